"""keys/: shown once, kept as a hash, never more than its maker holds."""

from datetime import timedelta

import pytest

from app.accounts.models import ApiKey, Role
from app.accounts.selectors import key_digest
from app.accounts.services import key_create
from app.billing.selectors import limits_remaining
from app.billing.types import Payer
from app.common.clock import now
from tests.factories import key_make, team_make, user_make

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/keys/"


def _make(client, **body):
    return client.post(KEYS, {"name": "laptop"} | body, format="json")


def test_a_key_is_shown_once_and_works(client_for, api_key, team):
    answer = _make(client_for(api_key))
    assert answer.status_code == 201
    plain, identity = answer.json()["key"], answer.json()["id"]
    assert answer["Location"] == f"{KEYS}{identity}/"
    assert client_for(plain).get("/api/v1/me/").json()["key_id"] == identity
    assert plain not in client_for(api_key).get(KEYS).content.decode()
    assert plain not in client_for(api_key).get(f"{KEYS}{identity}/").content.decode()
    row = ApiKey.objects.get(id=identity)
    assert plain not in (row.digest, row.prefix)
    assert row.team_id == team.id


def test_a_key_that_is_revoked_is_dead_and_gone_from_the_list(client_for, api_key):
    made = _make(client_for(api_key)).json()
    assert client_for(api_key).delete(f"{KEYS}{made['id']}/").status_code == 204
    assert client_for(made["key"]).get("/api/v1/me/").status_code == 401
    assert made["id"] not in [item["id"] for item in client_for(api_key).get(KEYS).json()["items"]]
    assert client_for(api_key).get(f"{KEYS}{made['id']}/").status_code == 404


@pytest.mark.parametrize(
    ("held", "asked", "status"),
    [
        (["read", "write"], ["read"], 201),
        (["read", "write"], ["read", "usage"], 403),
        (["read", "write"], ["staff"], 403),
        (["read", "write"], ["nonsense"], 422),
        (["read", "write"], [], 422),
        (["read"], ["read"], 403),
    ],
)
def test_nobody_gives_a_scope_they_do_not_hold(client_for, user, team, held, asked, status):
    client = client_for(key_make(user=user, team=team, scopes=held))
    assert _make(client, scopes=asked).status_code == status


@pytest.mark.parametrize(("models", "status"), [(["a"], 201), (["a", "b"], 403), (None, 403)])
def test_a_key_limited_to_models_makes_only_such_keys(client_for, user, team, models, status):
    _, plain = key_create(
        name="k", team_id=team.id, user_id=user.id, scopes=["write", "read"], models_allowed=["a"]
    )
    assert _make(client_for(plain), models=models).status_code == status


def test_a_key_limited_to_models_that_names_none_makes_no_wider_key(client_for, user, team):
    _, plain = key_create(name="k", team_id=team.id, user_id=user.id, scopes=["write"], models_allowed=["a"])
    assert _make(client_for(plain)).status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"kind": "robot"}, "kind"),
        ({"team": "mine"}, "team"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"budget": {"unit": "money", "limit": "-1", "period": "day"}}, "budget"),
        ({"budget": {"unit": "wishes", "limit": "1", "period": "day"}}, "budget"),
    ],
)
def test_a_wrong_field_is_named(client_for, api_key, body, field):
    answer = _make(client_for(api_key), **body)
    assert answer.status_code == 422
    assert field in answer.json()["error"]["detail"]["fields"]


def test_a_key_does_not_expire_in_the_past(client_for, api_key):
    answer = _make(client_for(api_key), expires_at=(now() - timedelta(days=1)).isoformat())
    assert answer.status_code == 422
    assert answer.json()["error"]["detail"]["field"] == "expires_at"


def test_a_team_that_is_not_mine_is_not_found(client_for, api_key):
    assert _make(client_for(api_key), team=str(team_make(owner=user_make()).id)).status_code == 404


def test_the_budget_of_a_key_is_in_force(client_for, api_key, team):
    made = _make(client_for(api_key), budget={"unit": "tokens", "limit": "500", "period": "day"}).json()
    (limit,) = [
        limit
        for limit in limits_remaining(Payer(team_id=team.id, key_id=ApiKey.objects.get(id=made["id"]).id))
        if limit.scope == "key"
    ]
    assert (limit.unit, limit.limit, limit.period, limit.hard) == ("tokens", 500, "day", True)


def test_a_limit_of_zero_is_shown_as_zero(client_for, api_key):
    made = _make(client_for(api_key), budget={"unit": "money", "limit": "0", "period": "day"}).json()
    assert made["budget"]["limit"] == "0"


@pytest.mark.parametrize(
    ("budget", "status"),
    [
        ({"unit": "tokens", "limit": "800", "period": "day"}, 200),
        ({"unit": "tokens", "limit": "1.5", "period": "day"}, 422),
        ({"unit": "money", "limit": "800", "period": "day"}, 422),
        ({"unit": "tokens", "limit": "800", "period": "week"}, 422),
        (None, 422),
    ],
)
def test_a_budget_keeps_its_unit_and_period(client_for, api_key, team, budget, status):
    made = _make(client_for(api_key), budget={"unit": "tokens", "limit": "500", "period": "day"}).json()
    answer = client_for(api_key).patch(f"{KEYS}{made['id']}/", {"budget": budget}, format="json")
    assert answer.status_code == status
    expected = 800 if status == 200 else 500
    payer = Payer(team_id=team.id, key_id=ApiKey.objects.get(id=made["id"]).id)
    assert [limit.limit for limit in limits_remaining(payer) if limit.scope == "key"] == [expected]


def test_name_scopes_and_end_can_be_changed(client_for, api_key):
    made = _make(client_for(api_key)).json()
    end = (now() + timedelta(days=1)).isoformat()
    changes = {"name": "phone", "scopes": ["read"], "expires_at": end, "models": ["a"]}
    answer = client_for(api_key).patch(f"{KEYS}{made['id']}/", changes, format="json").json()
    assert (answer["name"], answer["scopes"], answer["models"]) == ("phone", ["read"], ["a"])
    assert answer["expires_at"] is not None


def test_an_admin_sees_the_keys_of_the_team_and_a_member_does_not(client_for):
    team = team_make(owner=user_make())
    shared = key_make(user=None, team=team)
    for role, seen in ((Role.ADMIN, True), (Role.MEMBER, False)):
        client = client_for(key_make(user=user_make(team=team, role=role), team=team))
        listed = {item["id"]: item for item in client.get(KEYS).json()["items"]}
        assert (str(shared.row.id) in listed) == seen
        assert not seen or listed[str(shared.row.id)]["kind"] == "team"


def test_a_key_of_a_team_makes_no_personal_key(client_for, team):
    assert _make(client_for(key_make(user=None, team=team))).status_code == 403


@pytest.mark.parametrize(("role", "status"), [(Role.MEMBER, 403), (Role.ADMIN, 200)])
def test_an_admin_names_the_cost_centre_of_a_key(client_for, team, role, status):
    person = user_make(team=team, role=role)
    client = client_for(key_make(user=person, team=team))
    assert _make(client, cost_centre="4711").status_code == (201 if status == 200 else 403)
    made = _make(client).json()
    assert made["cost_centre"] == ""
    answer = client.patch(f"{KEYS}{made['id']}/", {"cost_centre": "4712"}, format="json")
    assert answer.status_code == status
    assert client.get(f"{KEYS}{made['id']}/").json()["cost_centre"] == ("4712" if status == 200 else "")


@pytest.mark.parametrize("kind", ["personal", "team"])
def test_a_key_with_a_limit_neither_lifts_it_nor_makes_keys_without(client_for, api_key, team, kind):
    """Whoever holds the key would otherwise spend without the limit it was given."""
    limit = {"unit": "tokens", "limit": "500", "period": "day"}
    made = _make(client_for(api_key), kind=kind, budget=limit).json()
    client = client_for(made["key"])
    lifted = {"budget": limit | {"limit": "9000"}}
    assert client.patch(f"{KEYS}{made['id']}/", lifted, format="json").status_code == 403
    assert _make(client, kind="personal").status_code == 403
    payer = Payer(team_id=team.id, key_id=ApiKey.objects.get(id=made["id"]).id)
    assert [x.limit for x in limits_remaining(payer) if x.scope == "key"] == [500]
    assert ApiKey.objects.filter(name="laptop").count() == 1


def test_a_key_does_not_put_off_its_own_end(client_for, api_key):
    ends = (now() + timedelta(days=1)).isoformat()
    made = _make(client_for(api_key), expires_at=ends).json()
    answer = client_for(made["key"]).patch(f"{KEYS}{made['id']}/", {"expires_at": None}, format="json")
    assert answer.status_code == 403


def test_a_key_may_be_tied_to_addresses(client_for, api_key, settings):
    made = _make(client_for(api_key), networks=["203.0.113.9/24", "2001:db8::1"]).json()
    assert made["networks"] == ["203.0.113.0/24", "2001:db8::1/128"]
    client = client_for(made["key"])
    refused = client.get("/api/v1/me/")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
    assert "127.0.0.1" in refused.json()["error"]["message"]
    # Nobody gets in by writing the header; through a trusted proxy it is the proxy's word.
    assert client.get("/api/v1/me/", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403
    settings.TRUSTED_PROXIES = 1
    assert client.get("/api/v1/me/", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 200
    forged = {"X-Forwarded-For": "203.0.113.7, 198.51.100.1"}
    assert client.get("/api/v1/me/", headers=forged).status_code == 403
    assert (
        client_for(api_key).patch(f"{KEYS}{made['id']}/", {"networks": []}, format="json").status_code == 200
    )
    assert client.get("/api/v1/me/").status_code == 200


def test_what_is_no_network_is_refused_by_name(client_for, api_key):
    answer = _make(client_for(api_key), networks=["everywhere"])
    assert answer.status_code == 422
    assert "networks" in answer.json()["error"]["detail"]["fields"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [(["127.0.0.1"], 201), (["127.0.0.0/16"], 201), ([], 403), (["0.0.0.0/0"], 403), (["::1"], 403)],
)
def test_a_key_tied_to_addresses_makes_only_such_keys(client_for, user, team, asked, status):
    _, plain = key_create(
        name="k", team_id=team.id, user_id=user.id, scopes=["write"], networks=["127.0.0.0/8"]
    )
    assert _make(client_for(plain), networks=asked, scopes=["write"]).status_code == status


def test_a_key_made_before_keys_had_a_checksum_goes_on_working(client_for, api_key):
    old = "tsr_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
    ApiKey.objects.filter(id=api_key.row.id).update(digest=key_digest(old), prefix=old[:10])
    assert client_for(old).get("/api/v1/me/").status_code == 200

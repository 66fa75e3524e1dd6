"""budgets/: who may set which limit, how high, and that setting one is no way to begin it anew."""

from decimal import Decimal

import pytest
from rest_framework.test import APIClient

from app.billing.errors import BudgetExhausted
from app.billing.models import Budget, LimitRequest
from app.billing.people import deciders_of
from app.billing.selectors import limits_remaining
from app.billing.services import budget_set, price_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.common.models import uuid7
from tests.factories import key_make, team_make, user_make

pytestmark = pytest.mark.django_db
URL = "/api/v1/budgets/"


@pytest.fixture(autouse=True)
def _no_defaults():
    Budget.objects.update(active=False)


def session(user):
    client = APIClient()
    client.force_login(user)
    return client


def put(client, **wish):
    wish = {"unit": "requests", "limit": "3", "period": "day"} | wish
    return client.post(URL, wish, format="json")


@pytest.fixture
def people(team, user):
    made = {role: user_make(team=team, role=role) for role in ("viewer", "member", "admin")}
    return made | {"owner": user, "stranger": user_make(), "staff": user_make(is_staff=True)}


ROLES = ("viewer", "member", "admin", "owner", "stranger", "staff")
ALLOWED = {
    # what: (viewer, member, admin, owner, stranger, staff)
    "installation": (403, 403, 403, 403, 403, 201),
    "every team": (403, 403, 403, 403, 403, 201),
    "team": (403, 403, 403, 201, 404, 201),
    "every allowance": (403, 403, 403, 403, 403, 201),
    "the team's allowance": (403, 403, 201, 201, 404, 201),
    "allowance": (403, 403, 201, 201, 404, 201),
    "allowance of a stranger": (403, 403, 404, 404, 404, 404),
    "person": (403, 403, 403, 403, 403, 201),
    "team key": (403, 403, 201, 201, 403, 201),
    "member's key": (403, 201, 403, 403, 403, 201),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_who_may_set_and_remove_which_limit(what, team, people):
    member, key = people["member"], key_make(user=None, team=team).row
    wishes = {
        "installation": {"scope": "installation"},
        "every team": {"scope": "team"},
        "team": {"scope": "team", "team": team.id},
        "every allowance": {"scope": "allowance"},
        "the team's allowance": {"scope": "allowance", "team": team.id},
        "allowance": {"scope": "allowance", "team": team.id, "person": member.account_id},
        "allowance of a stranger": {
            "scope": "allowance",
            "team": team.id,
            "person": people["stranger"].account_id,
        },
        "person": {"scope": "person", "person": member.account_id},
        "team key": {"scope": "key", "key": key.id},
        "member's key": {"scope": "key", "key": key_make(user=member, team=team).row.id},
    }
    for role, status in zip(ROLES, ALLOWED[what], strict=True):
        Budget.objects.update(active=False)
        client = session(people[role])
        made = put(client, **wishes[what])
        assert made.status_code == status, (role, made.json())
        assert Budget.objects.filter(active=True).exists() is (status == 201)
        if status == 201:
            row = made.json()
            assert (row["mine_to_set"], row["mine_to_remove"], row["limit"]) == (True, True, "3")
            assert row["id"] in [item["id"] for item in client.get(URL).json()["items"]]
            assert client.delete(f"{URL}{row['id']}/").status_code == 204
            assert client.get(f"{URL}{row['id']}/").status_code == 404
        elif what != "allowance of a stranger":
            identity = budget_set(
                scope=wishes[what]["scope"],
                unit="requests",
                limit=1,
                period="day",
                team_id=wishes[what].get("team"),
                account_id=wishes[what].get("person"),
                key_id=wishes[what].get("key"),
            )
            assert client.delete(f"{URL}{identity}/").status_code in {403, 404}
            assert Budget.objects.get(id=identity).active


def test_a_key_changes_no_limit_of_a_key_and_needs_the_scope(client_for, team, user):
    key = key_make(user=user, team=team)
    assert put(client_for(key), scope="key", key=key.row.id).status_code == 403
    assert put(client_for(key), scope="team", team=team.id).status_code == 201
    reader = key_make(user=user, team=team, scopes=("read",))
    refused = put(client_for(reader), scope="team", team=team.id)
    assert (refused.status_code, "`write`" in refused.json()["error"]["message"]) == (403, True)


def test_an_owner_goes_as_high_as_staff_granted(team, people):
    owner, staff = session(people["owner"]), session(people["staff"])
    granted = put(staff, scope="team", team=team.id, limit="10").json()
    assert granted["granted"] == "10"
    assert put(owner, scope="team", team=team.id, limit="4", hard=False).json()["hard"] is True
    too_much = put(owner, scope="team", team=team.id, limit="11").json()["error"]
    assert (too_much["code"], too_much["detail"]["most"]) == ("not_allowed", "10")
    assert put(owner, scope="team", team=team.id, limit="10").json()["granted"] == "10"
    assert owner.delete(f"{URL}{granted['id']}/").status_code == 403
    # One more of another period is the owner's own.
    own = put(owner, scope="team", team=team.id, limit="50", period="month").json()
    assert owner.delete(f"{URL}{own['id']}/").status_code == 204
    admin = session(people["admin"]).get(f"{URL}?team={team.id}").json()["items"]
    assert [(x["mine_to_set"], x["mine_to_remove"]) for x in admin] == [(False, False)]
    assert session(people["admin"]).get(f"{URL}{granted['id']}/").status_code == 200
    assert session(people["member"]).get(f"{URL}?team={team.id}").status_code == 403
    assert session(people["stranger"]).get(f"{URL}?team={team.id}").status_code == 404
    assert [x["id"] for x in staff.get(f"{URL}?team={team.id}").json()["items"]] == [granted["id"]]


def test_in_the_place_of_a_default_what_was_used_stays_used(team, people):
    staff, owner = session(people["staff"]), session(people["owner"])
    price_set(price_key="free", rates=[Rate(component="input", price=Decimal(0))], approved_by="tests")
    put(staff, scope="team", limit="3")
    payer = Payer(team_id=team.id)

    def ask(*, settled=True):
        hold = Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="free", input_tokens=1)
        reservation_hold(hold=hold)
        if settled:
            reservation_settle(
                reservation_id=hold.reservation_id, attempts=[Attempt(buckets=Buckets(input=1))]
            )

    ask()
    ask(settled=False)
    wrong = put(owner, scope="team", team=team.id, limit="9", period="month").json()["error"]
    assert (wrong["detail"]["field"], "by day" in wrong["message"]) == ("period", True)
    assert put(owner, scope="team", team=team.id, limit="4").status_code == 403
    own = put(owner, scope="team", team=team.id, limit="3").json()
    assert owner.delete(f"{URL}{own['id']}/").status_code == 403
    ask()
    with pytest.raises(BudgetExhausted):
        ask()
    put(owner, scope="team", team=team.id, limit="2")
    (limit,) = limits_remaining(payer)
    assert limit.remaining == 0


def test_nobody_raises_what_was_granted_to_themselves_alone(settings):
    person = user_make()
    team, client = person.default_team, session(person)
    staff = user_make(is_staff=True)
    subject = f"a:{team.id}:{person.account_id}"
    budget_set(scope="allowance", unit="money", limit=10, period="month")
    money = {"scope": "allowance", "unit": "money", "period": "month", "team": team.id}
    assert put(client, **money, person=person.account_id, limit="11").status_code == 403
    assert put(client, **money, person=person.account_id, limit="10").status_code == 201
    assert put(client, **money, person=person.account_id, limit="0").status_code == 201
    # A limit of their own making is theirs.
    for limit in ("5", "50"):
        assert put(client, scope="team", team=team.id, limit=limit).status_code == 201
    assert deciders_of(subject) == [staff]
    price_set(price_key="dear", rates=[Rate(component="input", price=Decimal(1))], approved_by="tests")
    payer = Payer(team_id=team.id, account_id=person.account_id)
    with pytest.raises(BudgetExhausted, match="An administrator of this installation can raise it") as exc:
        reservation_hold(
            hold=Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="dear", input_tokens=1)
        )
    url = "/api/v1/limit-requests/"
    asked = client.post(url, {"limit_id": exc.value.detail["limit_id"], "amount": "1"}, format="json").json()
    assert (asked["mine_to_decide"], LimitRequest.objects.get().state) == (False, "open")
    assert client.post(f"{url}{asked['id']}/decide/", {"grant": True}, format="json").status_code == 403


@pytest.mark.parametrize(("wish", "status", "says"), [
    ({"scope": "team", "limit": "-1"}, 422, "0"), ({"scope": "team", "limit": "1.5"}, 422, "whole number"),
    ({"scope": "team", "unit": "bytes"}, 422, "lifetime"), ({"scope": "prepaid"}, 422, "prepaid"),
    ({"scope": "installation", "with_team": True}, 422, "takes no team_id"), ({"scope": "key"}, 201, ""),
    ({"scope": "team", "team": "01a22c41-0000-7000-8000-000000000000"}, 404, "no such team"),
])  # fmt: skip
def test_what_is_no_limit_is_said(wish, status, says):
    staff = user_make(is_staff=True)
    team = team_make(owner=staff)
    wish = dict(wish)
    if wish.pop("with_team", False):
        wish["team"] = team.id
    answer = put(session(staff), **wish)
    assert answer.status_code == status
    assert says in answer.content.decode()

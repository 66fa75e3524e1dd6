"""Who gets in, as whom, and with which rights."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from app.accounts.models import ApiKey, Membership, Role
from app.accounts.services import key_revoke
from app.api import authentication
from app.common.clock import now
from tests.factories import PASSWORD, key_make, team_make, user_make

pytestmark = pytest.mark.django_db
ME = "/api/v1/me/"


def _expire(key):
    ApiKey.objects.filter(id=key.row.id).update(expires_at=now() - timedelta(seconds=1))


def _suspend(key):
    key.row.user.is_active = False
    key.row.user.save()


def _leave(key):
    Membership.objects.filter(user=key.row.user, team=key.row.team).delete()


def test_a_key_stands_for_its_person_and_its_team_pays(client_for, api_key, user, team):
    answer = client_for(api_key).get(ME)
    assert answer.status_code == 200
    assert answer.json()["id"] == str(user.id)
    assert answer.json()["email"] == user.email
    assert answer.json()["default_team"] == {"id": str(team.id), "name": team.name}
    assert {t["role"] for t in answer.json()["teams"]} == {"owner"}


def test_a_key_of_a_team_is_no_person(client_for, team):
    answer = client_for(key_make(user=None, team=team)).get(ME).json()
    assert answer["id"] is None
    assert answer["email"] is None
    assert [t["role"] for t in answer["teams"]] == ["member"]


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer nonsense", "Basic dXNlcjpwYXNz", "bearer tsr_x"]
)
def test_without_a_valid_key_nobody_gets_in(header):
    client = APIClient()
    if header is not None:
        client.credentials(HTTP_AUTHORIZATION=header)
    answer = client.get(ME)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "not_authenticated"
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("end", [_expire, _suspend, _leave, lambda key: key_revoke(key=key.row)])
def test_a_key_that_ended_is_unknown(client_for, api_key, end):
    assert client_for(api_key).get(ME).status_code == 200
    end(api_key)
    answer = client_for(api_key).get(ME)
    assert answer.status_code == 401
    assert api_key.plain not in answer.content.decode()


def test_the_use_of_a_key_is_noted_once_a_minute(client_for, api_key, django_assert_num_queries):
    authentication._touched.clear()
    client_for(api_key).get(ME)
    first = ApiKey.objects.get(id=api_key.row.id).last_used_at
    assert first is not None
    client_for(api_key).get(ME)
    assert ApiKey.objects.get(id=api_key.row.id).last_used_at == first


def test_a_signed_in_browser_needs_no_key(user, team):
    client = APIClient()
    assert client.login(email=user.email, password=PASSWORD)
    assert client.get(ME).json()["email"] == user.email


def test_a_wrong_password_signs_nobody_in(user, team):
    client = APIClient()
    assert not client.login(email=user.email, password="wrong horse")
    assert client.get(ME).status_code == 401


def test_a_browser_must_send_the_token_of_its_page(user, team):
    client = APIClient(enforce_csrf_checks=True)
    client.login(email=user.email, password=PASSWORD)
    answer = client.post("/api/v1/conversations/", {}, format="json")
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "csrf"
    assert "X-CSRFToken" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("scopes", "method", "path", "body"),
    [
        (("chat", "write"), "get", "conversations/", None),
        (("read", "write"), "post", "conversations/", {}),
        (("chat", "read"), "post", "collections/", {"name": "Handbook"}),
        (("chat", "read", "write"), "get", "usage/", None),
        (("chat", "write"), "post", "search/", {"query": "pumps"}),
        (("chat", "read", "usage"), "post", "keys/", {"name": "another"}),
    ],
)
def test_a_scope_that_was_not_given_is_named(client_for, user, team, scopes, method, path, body):
    client = client_for(key_make(user=user, team=team, scopes=scopes))
    answer = getattr(client, method)(f"/api/v1/{path}", body, format="json")
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "not_allowed"
    assert "scope" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("role", "path", "body", "status"),
    [
        (Role.VIEWER, "conversations/", {}, 403),
        (Role.MEMBER, "conversations/", {}, 201),
        (Role.MEMBER, "collections/", {"name": "Handbook"}, 403),
        (Role.ADMIN, "collections/", {"name": "Handbook"}, 201),
        (Role.VIEWER, "keys/", {"name": "mine"}, 403),
        (Role.MEMBER, "keys/", {"name": "mine"}, 201),
        (Role.MEMBER, "keys/", {"name": "ours", "kind": "team"}, 403),
        (Role.ADMIN, "keys/", {"name": "ours", "kind": "team"}, 201),
    ],
)
def test_roles_decide_who_may_spend_and_manage(client_for, role, path, body, status):
    team = team_make(owner=user_make())
    person = user_make(team=team, role=role)
    answer = client_for(key_make(user=person, team=team)).post(f"/api/v1/{path}", body, format="json")
    assert answer.status_code == status, answer.content

"""Leaving a team: what it means is told before, the last owner stays, and afterwards nothing of it opens."""

import pytest
from django.test import Client

from app.accounts.models import ApiKey, Membership, Role, Team, User
from app.accounts.services import membership_set
from tests.factories import conversation_make, key_make, team_make, user_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def crew() -> Team:
    return team_make(owner=user_make(), name="Crew")


@pytest.fixture
def member(crew: Team) -> User:
    person = user_make()
    membership_set(team=crew, user=person, role=Role.MEMBER)
    person.default_team = crew
    person.save()
    return person


@pytest.fixture
def browser(member: User) -> Client:
    client = Client()
    client.force_login(member)
    return client


def page(team: Team) -> str:
    return f"/accounts/teams/{team.id}/leave/"


def test_it_says_what_ends_and_then_it_has_ended(
    browser: Client, crew: Team, member: User, client_for
) -> None:
    keys = [key_make(user=member, team=crew), key_make(user=member, team=crew)]
    elsewhere = key_make(user=member, team=Team.objects.get(is_personal=True, memberships__user=member))
    teams_own = key_make(user=None, team=crew)
    conversation = conversation_make(user=member, team=crew, title="Plans")
    home = browser.get("/accounts/").content.decode()
    assert page(crew) in home and "/keys/" in home
    told = browser.get(page(crew)).content.decode()
    for words in ("2 API keys of yours", "One key of the team itself", "One private conversation"):
        assert words in told
    assert browser.post(page(crew)).status_code == 302
    assert "You are no longer in Crew." in browser.get("/accounts/").content.decode()
    assert not Membership.objects.filter(team=crew, user=member).exists()
    for key in keys:
        assert client_for(key).get("/api/v1/me/").status_code == 401
        assert ApiKey.objects.get(id=key.row.id).revoked_at is not None
    for key in (elsewhere, teams_own):
        assert client_for(key).get("/api/v1/me/").status_code == 200
    path = f"/api/v1/conversations/{conversation.id}/"
    assert browser.get(path).status_code == 404
    member.refresh_from_db()
    assert member.default_team != crew
    membership_set(team=crew, user=member, role=Role.VIEWER)
    assert browser.get(path).status_code == 200, "it opens again"


def test_the_last_owner_stays_and_so_does_everybody_in_their_own_team(member: User) -> None:
    owner, other = user_make(), user_make()
    team = team_make(owner=owner)
    client = Client()
    client.force_login(owner)
    assert "only owner" in client.get(page(team)).content.decode()
    assert client.post(page(team)).status_code == 409
    own = Team.objects.get(is_personal=True, memberships__user=owner)
    assert client.post(page(own)).status_code == 409
    assert "personal team" in client.get(page(own)).content.decode()
    membership_set(team=team, user=other, role=Role.OWNER)
    assert client.post(page(team)).status_code == 302
    assert list(Membership.objects.filter(team=team).values_list("user", flat=True)) == [other.id]


def test_a_stranger_learns_nothing(browser: Client) -> None:
    strange = team_make(owner=user_make(), name="Secret society")
    for answer in (browser.get(page(strange)), browser.post(page(strange))):
        assert answer.status_code == 404 and "Secret society" not in answer.content.decode()


def test_an_app_leaves_for_its_person(client_for, crew: Team, member: User) -> None:
    path = f"/api/v1/me/teams/{crew.id}/"
    personal = Team.objects.get(is_personal=True, memberships__user=member)
    key_make(user=member, team=crew)
    client = client_for(key_make(user=member, team=personal))
    assert client.get(path).json() == {
        "team": {"id": str(crew.id), "name": "Crew"}, "role": "member", "possible": True, "last_owner": False,
        "keys": 1, "team_keys": 0, "conversations": 0,
    }  # fmt: skip
    reader = client_for(key_make(user=member, team=personal, scopes=("read",)))
    assert reader.delete(path).status_code == 403
    assert client_for(key_make(user=None, team=crew)).delete(path).status_code == 404
    assert (client.delete(path).status_code, client.delete(path).status_code) == (204, 404)
    assert client.delete(f"/api/v1/me/teams/{personal.id}/").status_code == 409

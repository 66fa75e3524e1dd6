"""/dashboard/limits/: what remains, asking for more and deciding, limits of a team, the switch; by role."""

from decimal import Decimal

import pytest

from app.accounts.models import Membership, User
from app.billing.budgets import budget_set
from app.billing.models import Budget, LimitRequest
from app.billing.pausing import spending_paused_since
from app.billing.selectors import limits_remaining
from app.billing.services import price_set, reservation_hold
from app.billing.types import Hold, Payer, Rate
from app.common.models import uuid7
from tests.factories import user_make

pytestmark = pytest.mark.django_db
URL = "/dashboard/limits/"


@pytest.fixture(autouse=True)
def _one_limit(team):
    Budget.objects.update(active=False)
    budget_set(scope="team", unit="requests", limit=2, period="month", team_id=team.id, ceiling=9)


@pytest.fixture
def used(team, user):
    """One of the two is held; gives the id of the limit."""
    price_set(price_key="free", rates=[Rate(component="input", price=Decimal(0))], approved_by="tests")
    payer = Payer(team_id=team.id, account_id=user.account_id)
    reservation_hold(
        hold=Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="free", input_tokens=1)
    )
    return limits_remaining(payer)[0].window_id


def page(client, user, **query):
    client.force_login(user)
    return client.get(URL, query)


def test_it_says_what_remains_and_needs_a_person(client, user, team, used):
    assert client.get(URL).status_code == 302
    text = page(client, user).content.decode()
    for words in (f"Monthly request limit of team “{team.name}”", "<strong>1 request</strong> left of 2 requests",
                  "1 request held by answers", "Resets on 1 ", "Staff granted 9 requests"):  # fmt: skip
        assert words in text
    assert "<script>" not in text
    assert " style=" not in text
    assert "Pause everything" not in text


def test_somebody_without_a_team_is_told_so(client, user, team):
    Membership.objects.all().delete()
    User.objects.update(default_team_id=None)
    client.force_login(user)
    for answer in (client.get(URL), client.post(f"{URL}ask/", {"limit_id": uuid7()})):
        assert answer.status_code == 403
        assert "You are in no team yet" in answer.content.decode()


def test_a_member_asks_and_the_owner_decides_with_a_word(client, user, team, used):
    member = user_make(team=team)
    assert (
        "Limits that are set" not in page(client, member, team=str(team.id)).content.decode().split("Mine")[0]
    )
    wrong = client.post(f"{URL}ask/", {"limit_id": used, "team": team.id, "amount": "lots"})
    assert (wrong.status_code, "Write a number such as 20" in wrong.content.decode()) == (422, True)
    assert client.post(f"{URL}ask/", {"limit_id": used, "team": team.id, "amount": "3"}).status_code == 302
    request = LimitRequest.objects.get()
    assert client.post(f"{URL}requests/{request.id}/", {"grant": "yes"}).status_code == 403
    assert "Waiting for you" in page(client, user).content.decode()
    sent = {"grant": "no", "amount": "3", "answer": "next week"}
    assert client.post(f"{URL}requests/{request.id}/", sent).status_code == 302
    text = page(client, member).content.decode()
    assert ("declined" in text, "next week" in text) == (True, True)


def test_an_owner_sets_changes_and_removes_within_the_grant(client, user, team):
    member = user_make(team=team)
    client.force_login(user)
    wish = {
        "team": team.id,
        "account": member.account_id,
        "unit": "money",
        "period": "month",
        "limit": "4.50",
    }
    assert client.post(f"{URL}set/", wish).status_code == 302
    row = Budget.objects.get(subject=f"a:{team.id}:{member.account_id}")
    wrong = [
        ({"limit": ""}, "Write how much"),
        ({"unit": "bytes"}, "lifetime"),
        ({"account": "me"}, "Open the page again"),
        ({"unit": "requests"}, "whole number"),
    ]
    for changes, words in wrong:
        answer = client.post(f"{URL}set/", wish | changes)
        assert (answer.status_code, words in answer.content.decode()) == (422, True)
    assert client.post(f"{URL}{row.id}/change/", {"limit": "5"}).status_code == 302
    assert Budget.objects.get(id=row.id).limit == 5
    pool = Budget.objects.get(scope="team", active=True)
    answer = client.post(f"{URL}{pool.id}/change/", {"limit": "10"})
    assert (answer.status_code, "Staff granted 9" in answer.content.decode()) == (403, True)
    assert client.post(f"{URL}{pool.id}/remove/").status_code == 403
    assert client.post(f"{URL}{row.id}/remove/").status_code == 302
    assert not Budget.objects.get(id=row.id).active
    client.force_login(member)
    assert client.post(f"{URL}set/", wish).status_code == 403


def test_staff_see_all_and_turn_the_switch(client, user, team):
    client.force_login(user)
    assert client.post(f"{URL}pause/", {"paused": "yes"}).status_code == 403
    staff = user_make(is_staff=True)
    budget_set(scope="installation", unit="money", limit=100, period="month")
    assert "This installation" in page(client, staff, team=str(team.id)).content.decode()
    assert client.post(f"{URL}pause/", {"paused": "yes", "reason": "audit"}).status_code == 302
    assert spending_paused_since() is not None
    assert "is paused since" in page(client, user).content.decode()
    client.force_login(staff)
    assert client.post(f"{URL}pause/", {"paused": "no"}).status_code == 302
    assert spending_paused_since() is None

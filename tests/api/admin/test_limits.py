"""Rates, the pause and requests for more, as staff turn them."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from app.accounts.models import Team, User
from app.billing.models import BudgetWindow, LimitRequest, Pause, RateLimit
from app.billing.pausing import spending_paused_since
from app.billing.raising import limit_request_create
from app.billing.services import budget_set
from app.billing.types import Payer
from tests.api.admin.conftest import page

pytestmark = pytest.mark.django_db


def test_a_rate_limit_is_set_shown_and_taken_away(browser: Client, team: Team, user: User) -> None:
    add = page(RateLimit, "add")
    for who in ({"scope": "team", "team": str(team.pk)}, {"scope": "person", "person": str(user.pk)}):
        assert browser.post(add, {**who, "requests": "10", "tokens": "", "streams": "2"}).status_code == 302
    row = RateLimit.objects.get(subject=f"t:{team.pk}")
    assert (row.requests, row.tokens, row.streams) == (10, None, 2)
    shown = browser.get(page(RateLimit))
    assert str(team) in shown.content.decode()
    assert browser.get(page(RateLimit, "change", row.pk)).status_code == 200
    wrong = browser.post(add, {"scope": "installation", "team": str(team.pk), "requests": "1"})
    assert "takes no team_id" in wrong.content.decode()
    assert browser.post(page(RateLimit, "delete", row.pk), {"post": "yes"}).status_code == 302
    assert not RateLimit.objects.filter(pk=row.pk).exists()


def test_the_switch_is_turned_by_adding_a_row(browser: Client) -> None:
    add = page(Pause, "add")
    assert browser.post(add, {"reason": "nothing to lift"}).status_code == 302
    assert browser.post(add, {"paused": "on", "reason": "invoice check"}).status_code == 302
    assert spending_paused_since() is not None
    row = Pause.objects.order_by("-id")[0]
    assert "invoice check" in browser.get(page(Pause, "change", row.pk)).content.decode()
    assert browser.post(add, {"reason": ""}).status_code == 302
    assert spending_paused_since() is None


@pytest.mark.parametrize(
    ("action", "amount", "state"),
    [("grant", Decimal(3), "granted"), ("decline", None, "declined"), ("grant", None, "open")],
)
def test_requests_are_granted_as_asked_or_declined(
    browser: Client, team: Team, user: User, action: str, amount: Decimal | None, state: str, booked: Any
) -> None:
    window = BudgetWindow.objects.filter(subject="i")[0]
    budget_set(scope="installation", unit="money", limit=100, period="month")
    payer = Payer(team_id=team.id, account_id=user.account_id)
    request = limit_request_create(window_id=window.id, payer=payer, amount=amount)[0]
    listed = browser.get(page(LimitRequest)).content.decode()
    assert "the installation" in listed
    done = browser.post(
        page(LimitRequest), {"action": action, "_selected_action": [str(request.pk)]}, follow=True
    )
    request.refresh_from_db()
    assert request.state == state
    assert ("Say by how much" in done.content.decode()) is (state == "open")
    window.refresh_from_db()
    assert window.raised == (3 if state == "granted" else 0)

"""Alerts: each threshold once in a window, the highest told, by mail and by webhook, off the way of every call."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from django.db import connection
from pytest_django import Settings

from app.accounts.models import Team, User
from app.billing import alerting
from app.billing.alerting import alerts_run
from app.billing.models import BudgetAlert, OvershootAlert, Webhook
from app.billing.people import deciders_of, told_of
from app.billing.services import budget_set, reservation_hold, reservation_settle
from app.billing.types import Payer
from tests.factories import key_make, user_make
from tests.integration.billing.conftest import MakeHold, used

pytestmark = pytest.mark.django_db(transaction=True)
D = Decimal


@pytest.fixture
def own(user: User, team: Team) -> Payer:
    return Payer(team_id=team.id, account_id=user.account_id)


@pytest.fixture(autouse=True)
def _mail(settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example"


def spend(hold: MakeHold, payer: Payer, calls: int = 1) -> None:
    """Each is 0.002."""
    for _ in range(calls):
        item = hold(payer=payer)
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used()])


def ratios() -> list[str]:
    return [f"{a.ratio.normalize():f}" for a in BudgetAlert.objects.order_by("ratio")]


def test_each_threshold_is_told_once(roomy: UUID, own: Payer, hold: MakeHold, user: User) -> None:
    budget_set(
        scope="team", unit="money", limit=D("0.02"), period="month", team_id=own.team_id, name="the pool"
    )
    counts = []
    for calls in (4, 1, 0, 3, 0, 2, 0):
        spend(hold, own, calls)
        alerts_run()
        counts.append(len(mail.outbox))
    assert counts == [0, 1, 1, 2, 2, 3, 3]
    assert ratios() == ["0.5", "0.8", "1"]
    assert [m.to for m in mail.outbox] == [[user.email]] * 3
    assert mail.outbox[2].subject.startswith("100 % of a limit is used: the pool of Team")
    assert "Further calls are refused" in mail.outbox[2].body
    assert "€0.02" in mail.outbox[2].body


def test_a_raised_limit_is_told_of_again_and_a_lowered_one_of_what_is_new(
    roomy: UUID, own: Payer, hold: MakeHold
) -> None:
    rule: dict[str, Any] = {"scope": "team", "unit": "money", "period": "month", "team_id": own.team_id}
    budget_set(limit=D("0.02"), **rule)
    told = []
    for calls, limit in ((5, "0.04"), (4, "0.04"), (1, "0.04"), (0, "0.03"), (0, "0.02"), (0, "0.02")):
        spend(hold, own, calls)
        alerts_run()
        told.append([m.subject[:4] for m in mail.outbox])
        mail.outbox.clear()
        budget_set(limit=D(limit), **rule)
    # half of 0.02, nothing at 45 % of 0.04, half of 0.04; then two thirds of 0.03, which was told; then all of 0.02
    assert told == [["50 %"], [], ["50 %"], [], [], ["100 "]]


def test_of_thresholds_passed_together_the_highest_is_told(roomy: UUID, own: Payer, hold: MakeHold) -> None:
    budget_set(
        scope="person", unit="requests", limit=2, period="lifetime", account_id=own.account_id, hard=False
    )
    spend(hold, own, 2)
    assert alerts_run() == 3
    assert ratios() == ["0.5", "0.8", "1"]
    assert [m.subject[:5] for m in mail.outbox if "person" in str(m.to)] == ["100 %"]
    assert "It only warns" in mail.outbox[0].body
    assert "does not reset" in mail.outbox[0].body
    assert str(BudgetAlert.objects.order_by("ratio")[0]).startswith("50 % of ")


def test_two_lookers_tell_once(roomy: UUID, own: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="requests", limit=1, period="day", team_id=own.team_id)
    spend(hold, own)

    def look(_: int) -> int:
        try:
            return alerts_run()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(look, range(6)))
    assert len(mail.outbox) == 1
    assert BudgetAlert.objects.filter(told_at=None).count() == 0


def test_a_webhook_that_was_away_hears_later_and_the_mail_is_not_repeated(
    roomy: UUID, own: Payer, hold: MakeHold, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings.OUTBOUND_ALLOW = [f"127.0.0.1:{free.getsockname()[1]}", "127.0.0.1"]
        url = f"http://127.0.0.1:{free.getsockname()[1]}/hook"
    hook = Webhook(name="books", url=url, open=True)
    hook.set_secret("whsec_" + "QUJD" * 8)
    hook.save()
    budget_set(scope="team", unit="tokens", limit=1500, period="day", team_id=own.team_id)
    spend(hold, own)
    assert alerts_run() == 2
    (waiting,) = BudgetAlert.objects.filter(told_at=None)
    assert (waiting.attempts, waiting.left, len(mail.outbox)) == (1, [str(hook.id)], 1)

    heard: list[Any] = []

    async def answering(request: Any) -> Any:
        heard.append(request)
        return type("Answer", (), {"status": 204})

    monkeypatch.setattr(alerting, "send", answering)
    assert (alerts_run(), alerts_run(), len(mail.outbox)) == (1, 0, 1)
    (request,) = heard
    assert request.headers["webhook-id"] == str(waiting.id)
    assert b'"type": "budget.alert"' in request.body
    assert b'"used": "1500"' in request.body


def overshoot(hold: MakeHold, payer: Payer) -> None:
    """0.0028 where 0.002 was held."""
    item = hold(payer=payer)
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(1000, 900)])


def test_an_overshoot_is_told_once_for_a_team_and_hour(
    roomy: UUID, own: Payer, hold: MakeHold, user: User, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = user_make(is_staff=True)
    hook = Webhook(name="books", url="https://books.example/hook", open=True)
    hook.set_secret("whsec_" + "QUJD" * 8)
    hook.save()
    heard: list[Any] = []

    async def answering(request: Any) -> Any:
        heard.append(json.loads(request.body))
        return type("Answer", (), {"status": 204})

    monkeypatch.setattr(alerting, "send", answering)
    spend(hold, own)
    assert (alerts_run(), len(mail.outbox)) == (0, 0)
    for _ in range(2):
        overshoot(hold, own)
    assert (alerts_run(), alerts_run()) == (1, 0)
    overshoot(hold, own)
    # Its own team's hour has been told of; another payer's has not.
    overshoot(hold, Payer(team_id=None))
    assert alerts_run() == 1
    of_team = OvershootAlert.objects.filter(team_id=team.id).order_by("id")[0]
    assert str(OvershootAlert.objects.get(team_id=None)).startswith("1 of the installation in the hour")
    assert (of_team.calls, of_team.held_tokens, of_team.used_tokens, of_team.told) == (
        2,
        1500,
        1900,
        ["mail", str(hook.id)],
    )
    assert [m.to for m in mail.outbox] == [[user.email], [staff.email], [staff.email]]
    text = mail.outbox[0].body
    assert f"2 calls of team {team} used more than was held" in text
    assert "€0.0028 where €0.0020 was held" in text
    assert "A call of the installation used more" in mail.outbox[2].body
    first = heard[0]
    assert (first["type"], first["team_id"], first["price"], first["held_price"]) == (
        "budget.overshoot",
        str(team.id),
        "0.0028",
        "0.002",
    )


def test_an_overshoot_without_a_price_is_told_in_tokens(own: Payer, hold: MakeHold, user: User) -> None:
    item = hold(payer=own, price_key="no-price")
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(1000, 900, price_key="no-price")])
    assert alerts_run() == 1
    assert "1\u202f900 tokens where at most 1\u202f500 were held. It is booked" in mail.outbox[0].body


def test_without_mail_an_alert_is_still_a_row(
    roomy: UUID, own: Payer, hold: MakeHold, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget_set(scope="team", unit="requests", limit=1, period="day", team_id=own.team_id)
    spend(hold, own)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert alerts_run() == 3
    assert (len(mail.outbox), BudgetAlert.objects.filter(told_at=None).count()) == (0, 0)


def test_who_may_raise_a_limit_and_who_hears_of_it(user: User, team: Team, db: None) -> None:
    admin, member, staff = (
        user_make(team=team, role="admin"),
        user_make(team=team, role="member"),
        user_make(is_staff=True),
    )
    own_key, team_key = key_make(user=member, team=team).row, key_make(user=None, team=team).row
    assert deciders_of(f"t:{team.id}") == [user]
    assert deciders_of(f"a:{team.id}:{member.account_id}") == [user, admin]
    assert deciders_of(f"k:{own_key.id}") == [user, admin, member]
    assert deciders_of(f"k:{team_key.id}") == [user, admin]
    assert deciders_of(f"k:{team.id}") == []
    assert deciders_of("i") == deciders_of(f"p:{member.account_id}") == [staff]
    assert told_of(f"p:{member.account_id}") == [member, staff]
    assert told_of(f"a:{team.id}:{admin.account_id}") == [user, admin]

"""What changes while a call runs, and what comes when its period is over: every call counts once, where it began."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.accounts.models import ApiKey
from app.billing.alerting import alerts_run
from app.billing.errors import BudgetExhausted
from app.billing.late import entry_adjust
from app.billing.models import BudgetAlert, BudgetWindow, LedgerEntry
from app.billing.selectors import limits_remaining
from app.billing.services import (
    budget_remove,
    budget_set,
    price_set,
    reservation_hold,
    reservation_settle,
)
from app.billing.types import Buckets, Payer, Rate
from app.billing.verification import ledger_verify
from app.common.clock import now
from tests.factories import key_make, team_make, user_make
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, Spent, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal


@pytest.fixture
def rule(roomy: UUID, payer: Payer) -> dict[str, Any]:
    return {"scope": "team", "unit": "money", "period": "month", "team_id": payer.team_id}


def test_truth_about_a_month_that_is_over_moves_that_month_alone(
    rule: dict[str, Any], payer: Payer, hold: MakeHold
) -> None:
    budget_set(limit=1, **rule)
    later = now() + timedelta(days=40)
    old, new = hold(effective_at=now() + timedelta(seconds=1)), hold(effective_at=later)
    for item in (old, new):
        reservation_hold(hold=item)
    (entry,) = reservation_settle(reservation_id=old.reservation_id, attempts=[used()]).entries
    reservation_settle(reservation_id=new.reservation_id, attempts=[used()])
    entry_adjust(
        entry_id=entry.id, buckets=Buckets(input=5000), reason="invoice", actor="t", dedupe_key="i-1"
    )
    spent = [
        next(x.spent for x in limits_remaining(payer, at=at) if x.scope == "team") for at in (now(), later)
    ]
    assert spent == [D("0.005"), D("0.002")]
    booked = LedgerEntry.objects.filter(reservation_id=old.reservation_id)
    assert {e.effective_at for e in booked} == {old.effective_at}
    assert ledger_verify().differences == ()


def test_a_limit_lowered_below_what_is_held_ends_no_call_and_admits_none(
    rule: dict[str, Any], payer: Payer, hold: MakeHold
) -> None:
    budget_set(limit=D("0.01"), **rule)
    running = hold()
    reservation_hold(hold=running)
    budget_set(limit=D("0.001"), **rule)
    assert limit_of(payer, "team").remaining == 0
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold())
    settled = reservation_settle(reservation_id=running.reservation_id, attempts=[used()])
    assert (settled.price, settled.overshoot) == (D("0.002"), False)
    budget_set(limit=D("0.01"), **rule)
    assert limit_of(payer, "team").remaining == D("0.008")
    assert ledger_verify().differences == ()


def test_a_limit_removed_while_a_call_runs_still_counts_it(
    rule: dict[str, Any], payer: Payer, hold: MakeHold
) -> None:
    budget = budget_set(limit=1, **rule)
    running = hold()
    reservation_hold(hold=running)
    budget_remove(budget_id=budget)
    reservation_settle(reservation_id=running.reservation_id, attempts=[used()])
    window = BudgetWindow.objects.get(budget=budget)
    assert sum(line.spent for line in window.lines.all()) == D("0.002")
    assert ledger_verify().differences == ()


def test_two_prices_in_one_month_add_up_in_its_limit(
    rule: dict[str, Any], payer: Payer, hold: MakeHold
) -> None:
    """The second call was held at the old price, and is charged at it though it ends under the new one."""
    budget_set(limit=1, **rule)
    first, second = hold(), hold()
    for item in (first, second):
        reservation_hold(hold=item)
    reservation_settle(reservation_id=first.reservation_id, attempts=[used()])
    dearer = tuple(Rate(component=rate.component, price=10 * rate.price) for rate in PRICE)
    price_set(price_key=MODEL, rates=dearer, approved_by="t")
    reservation_settle(reservation_id=second.reservation_id, attempts=[used()])
    third = hold()
    reservation_hold(hold=third)
    reservation_settle(reservation_id=third.reservation_id, attempts=[used()])
    assert limit_of(payer, "team").spent == D("0.002") + D("0.002") + D("0.02")
    assert ledger_verify().differences == ()


def test_a_key_that_is_gone_when_its_call_ends_has_still_paid(roomy: UUID, hold: MakeHold) -> None:
    user = user_make()
    team = team_make(owner=user)
    key = key_make(user=user, team=team).row
    payer = Payer(team_id=team.id, account_id=user.account_id, key_id=key.id)
    budget_set(scope="key", unit="money", limit=1, period="month", key_id=key.id)
    item = hold(payer=payer)
    reservation_hold(hold=item)
    ApiKey.objects.filter(id=key.id).delete()
    assert reservation_settle(reservation_id=item.reservation_id, attempts=[used()]).price == D("0.002")
    assert LedgerEntry.objects.get().key_id == payer.key_id
    assert limit_of(payer, "key").spent == D("0.002")


def test_an_id_that_a_provider_uses_twice_is_two_calls(roomy: UUID, hold: MakeHold, spent: Spent) -> None:
    for _ in range(2):
        item = hold()
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used(upstream_id="chatcmpl-1")])
    assert LedgerEntry.objects.count() == 2
    assert spent("installation") == (D("0.004"), D(0))


def test_a_soft_limit_warns_once_however_far_it_is_passed(rule: dict[str, Any], hold: MakeHold) -> None:
    budget_set(limit=D("0.002"), hard=False, **rule)
    for _ in range(3):
        item = hold()
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
        alerts_run()
    found = BudgetAlert.objects.filter(window__subject__startswith="t:").order_by("ratio")
    assert [(a.ratio.normalize(), a.used) for a in found] == [
        (D("0.5"), D("0.002")), (D("0.8"), D("0.002")), (D(1), D("0.002")),
    ]  # fmt: skip

"""Which hold it is, and which limits it meets: repeats, changed limits, defaults."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.billing.errors import BudgetExhausted, ReservationConflict
from app.billing.models import Budget, BudgetWindow, Reservation
from app.billing.raising import window_raise
from app.billing.selectors import limits_remaining
from app.billing.services import (
    bootstrap_defaults,
    budget_remove,
    budget_set,
    reservation_hold,
    reservation_settle,
)
from app.billing.types import LimitState, Payer, Period
from app.billing.verification import ledger_verify
from app.common.models import uuid7
from tests.integration.billing.conftest import MakeHold, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal


def test_the_same_id_returns_the_same_hold(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    item = hold()
    first, second = reservation_hold(hold=item), reservation_hold(hold=item)
    assert (first.replayed, second.replayed) == (False, True)
    assert second.price == first.price
    assert limit_of(payer, "installation").held == D("0.002")


def test_an_idempotency_key_is_one_call_with_one_body(roomy: UUID, hold: MakeHold) -> None:
    first = reservation_hold(hold=hold(dedupe_key="order-7", fingerprint="a"))
    again = reservation_hold(hold=hold(dedupe_key="order-7", fingerprint="a"))
    assert again.reservation_id == first.reservation_id
    with pytest.raises(ReservationConflict):
        reservation_hold(hold=hold(dedupe_key="order-7", fingerprint="b"))
    assert reservation_hold(hold=hold(dedupe_key="order-7", payer=Payer(team_id=uuid7()))).replayed is False


def test_raising_a_limit_reaches_the_open_window(priced: None, payer: Payer, hold: MakeHold) -> None:
    rule: dict[str, Any] = {"scope": "team", "unit": "requests", "period": "month", "team_id": payer.team_id}
    budget_set(scope="installation", unit="money", limit=100, period="month")
    first = budget_set(limit=1, **rule)
    reservation_hold(hold=hold())
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold())
    assert budget_set(limit=2, **rule) == first
    reservation_hold(hold=hold())
    budget_remove(budget_id=first)
    reservation_hold(hold=hold())
    assert BudgetWindow.objects.get(budget_id=first).held == 2


def test_another_zone_is_another_budget(roomy: UUID, payer: Payer) -> None:
    rule: dict[str, Any] = {
        "scope": "team",
        "unit": "money",
        "period": "day",
        "team_id": payer.team_id,
        "limit": 1,
    }
    first = budget_set(zone="Europe/Berlin", **rule)
    second = budget_set(zone="America/New_York", **rule)
    assert first != second
    assert [b.active for b in Budget.objects.filter(id__in=[first, second]).order_by("created_at")] == [
        False,
        True,
    ]


@pytest.mark.parametrize("period", ["day", "week", "month", "lifetime"])
def test_another_zone_is_no_second_limit(roomy: UUID, payer: Payer, hold: MakeHold, period: Period) -> None:
    """What was spent and what is held then is used in the new zone too, and so is what was added for this window."""
    rule: dict[str, Any] = {"scope": "team", "unit": "money", "period": period, "team_id": payer.team_id}
    budget_set(zone="Pacific/Kiritimati", limit=D("0.004"), **rule)
    settled, running = hold(), hold()
    for item in (settled, running):
        reservation_hold(hold=item)
    reservation_settle(reservation_id=settled.reservation_id, attempts=[used()])
    window_raise(window_id=BudgetWindow.objects.get(subject=f"t:{payer.team_id}").id, amount=D("0.001"))
    budget_set(zone="Pacific/Niue", limit=D("0.0045"), **rule)
    assert limit_of(payer, "team").remaining == D("0.0015")
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold(min_output_tokens=500))
    reservation_settle(reservation_id=running.reservation_id, attempts=[used()])
    assert ledger_verify().differences == ()


def test_an_expired_hold_makes_room_without_a_sweeper(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="requests", limit=1, period="month", team_id=payer.team_id)
    dead = hold()
    reservation_hold(hold=dead)
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold())
    Reservation.objects.filter(id=dead.reservation_id).update(expires_at="2020-01-01T00:00:00Z")
    reservation_hold(hold=hold())
    assert Reservation.objects.get(id=dead.reservation_id).state == "expired"
    assert limit_of(payer, "team", "requests").held == 1


def test_the_installation_pays_for_its_own_calls(roomy: UUID, hold: MakeHold) -> None:
    budget_set(scope="allowance", unit="money", limit=0, period="month")
    budget_set(scope="team", unit="money", limit=0, period="month")
    nobody = Payer(team_id=None)
    assert reservation_hold(hold=hold(payer=nobody, kind="probe")).state == "held"
    assert [state.scope for state in limits_remaining(nobody)] == ["installation"]


def scopes(states: Sequence[LimitState]) -> list[str]:
    return [state.scope for state in states]


def test_the_defaults_hold_from_the_first_call(priced: None, payer: Payer, hold: MakeHold) -> None:
    Budget.objects.all().delete()
    bootstrap_defaults()
    bootstrap_defaults()
    assert Budget.objects.count() == 2
    reservation_hold(hold=hold())
    assert scopes(limits_remaining(payer)) == ["installation", "allowance"]
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold(input_tokens=20_000_000))
    assert refused.value.detail["scope"] == "allowance"

"""Many at once: exactly what fits is admitted, and nothing stays held."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from app.billing.budgets import windows_carry
from app.billing.errors import BudgetExhausted
from app.billing.models import BudgetWindow, LedgerEntry, Reservation
from app.billing.selectors import limits_remaining
from app.billing.services import (
    budget_set,
    price_set,
    reservation_hold,
    reservation_release,
    reservation_settle,
    reservations_sweep,
)
from app.billing.types import Hold, Payer
from app.billing.verification import ledger_verify
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, used

pytestmark = pytest.mark.django_db(transaction=True)
D = Decimal
T = TypeVar("T")


def at_once(work: Callable[[int], T], count: int) -> list[T]:
    """Run `work` in `count` threads that start together, each on its own connection."""
    barrier = Barrier(count)

    def run(number: int) -> T:
        connection.ensure_connection()
        barrier.wait(timeout=60)
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def admitted(hold: Hold) -> bool:
    try:
        reservation_hold(hold=hold)
    except BudgetExhausted:
        return False
    return True


@pytest.mark.parametrize(
    "rule",
    [
        {"scope": "team", "unit": "money", "limit": D("0.02")},
        {"scope": "team", "unit": "tokens", "limit": 15_000},
        {"scope": "team", "unit": "requests", "limit": 10},
        {"scope": "allowance", "unit": "money", "limit": D("0.02")},
        {"scope": "key", "unit": "requests", "limit": 10},
    ],
)
def test_sixty_four_calls_on_a_budget_for_ten(
    rule: dict[str, Any], roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    owners: dict[str, Any] = {"team": {"team_id": payer.team_id}, "key": {"key_id": payer.key_id}}
    budget = budget_set(period="month", **rule, **owners.get(rule["scope"], {}))
    holds = [hold(min_output_tokens=500) for _ in range(64)]

    won = at_once(lambda number: admitted(holds[number]), 64)

    assert sum(won) == 10
    running = [item for item, ok in zip(holds, won, strict=True) if ok]
    for item in running[:5]:
        reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    for item in running[5:]:
        reservation_release(reservation_id=item.reservation_id)
    (state,) = [state for state in limits_remaining(payer) if state.budget_id == budget]
    assert (state.spent * 2, state.held) == (state.limit, 0)
    assert LedgerEntry.objects.aggregate(Sum("price"))["price__sum"] == D("0.01")
    assert ledger_verify().differences == ()


def test_first_calls_at_a_barrier_make_one_window(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget = budget_set(scope="allowance", unit="money", limit=D("0.006"), period="month")
    holds = [hold(min_output_tokens=500) for _ in range(8)]
    assert sum(at_once(lambda number: admitted(holds[number]), 8)) == 3
    assert BudgetWindow.objects.get(budget_id=budget).held == D("0.006")


def test_the_same_call_from_many_connections_is_held_once(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    item = hold()
    results = at_once(lambda _: reservation_hold(hold=item), 16)
    assert sum(not result.replayed for result in results) == 1
    assert {result.reservation_id for result in results} == {item.reservation_id}
    assert limits_remaining(payer)[0].held == D("0.002")


def test_the_same_settlement_from_many_connections_is_booked_once(roomy: UUID, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    results = at_once(lambda _: reservation_settle(reservation_id=item.reservation_id, attempts=[used()]), 16)
    assert sum(not result.replayed for result in results) == 1
    assert LedgerEntry.objects.count() == 1


def test_settling_and_sweeping_race_to_one_end(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    holds = [hold() for _ in range(12)]
    for item in holds:
        reservation_hold(hold=item)
    Reservation.objects.update(expires_at="2020-01-01T00:00:00Z", seen_output_tokens=10)

    def work(number: int) -> None:
        if number < 12:
            reservation_settle(reservation_id=holds[number].reservation_id, attempts=[used()])
        else:
            reservations_sweep()

    at_once(work, 16)

    assert limits_remaining(payer)[0].spent == 12 * D("0.002")
    assert limits_remaining(payer)[0].held == 0
    assert ledger_verify().differences == ()


def test_people_of_one_team_share_its_pool_and_keep_their_own(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    """Windows are locked in one order whoever comes, so calls of different people never wait in a circle."""
    budget_set(scope="team", unit="requests", limit=20, period="month", team_id=payer.team_id)
    budget_set(scope="allowance", unit="requests", limit=4, period="day")
    people = [Payer(team_id=payer.team_id, account_id=uuid7()) for _ in range(8)]
    holds = [hold(payer=people[number % 8]) for number in range(48)]

    won = at_once(lambda number: admitted(holds[number]), 48)

    assert sum(won) == 20
    for person in people:
        (own,) = [state for state in limits_remaining(person) if state.scope == "allowance"]
        assert own.held <= 4


def test_prices_set_at_once_never_overlap() -> None:
    versions = at_once(
        lambda number: price_set(price_key=f"{MODEL}-race", rates=PRICE, approved_by=str(number)), 6
    )
    spans = sorted(v.effective_from for v in versions)
    assert len(set(spans)) == 6


def asked_for(item: Hold) -> bool:
    """Ask for it in a thread of its own."""
    try:
        return admitted(item)
    finally:
        connection.close()


def test_a_hold_that_waits_while_a_limits_zone_changes_counts_in_the_new_window(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    rule: dict[str, Any] = {"scope": "team", "unit": "requests", "limit": 2, "period": "week"}
    budget_set(**rule, team_id=payer.team_id, zone="UTC")
    assert admitted(hold())

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            budget_set(**rule, team_id=payer.team_id, zone="Asia/Tokyo")
            waiting = pool.submit(asked_for, hold())
            blocked(waiting)
        assert waiting.result(timeout=60)
    assert not admitted(hold())
    assert ledger_verify().differences == ()


ALLOWANCE: dict[str, Any] = {"scope": "allowance", "unit": "requests", "limit": 2, "period": "month"}


@transaction.atomic
def own_limit(default: UUID, payer: Payer, *, everyone: bool) -> None:
    """Put a limit of the team's members, or of this one, in the place of everybody's."""
    account = {} if everyone else {"account_id": payer.account_id}
    windows_carry(before=default, after=budget_set(**ALLOWANCE, team_id=payer.team_id, **account))


@pytest.mark.parametrize("everyone", [False, True])
def test_a_hold_that_waits_while_an_own_limit_replaces_the_default_counts_in_the_own_one(
    roomy: UUID, payer: Payer, hold: MakeHold, everyone: bool
) -> None:
    default = budget_set(**ALLOWANCE)
    assert admitted(hold())

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            own_limit(default, payer, everyone=everyone)
            waiting = pool.submit(asked_for, hold())
            blocked(waiting)
        assert waiting.result(timeout=60)
    assert not admitted(hold())
    assert ledger_verify().differences == ()


def test_an_own_limit_waits_for_a_hold_that_begins_the_window_of_the_default(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    default = budget_set(**ALLOWANCE)

    def replace() -> None:
        try:
            own_limit(default, payer, everyone=False)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert admitted(hold())
            waiting = pool.submit(replace)
            blocked(waiting)
        waiting.result(timeout=60)
    assert admitted(hold())
    assert not admitted(hold())
    assert ledger_verify().differences == ()


def blocked(work: Future[Any]) -> None:
    """Until that work waits for a row that this transaction holds."""
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            if cursor.fetchone() != (0,):
                return
            assert not work.done(), "it did not wait"

"""What settling books: to the last digit, and once."""

from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection

from app.billing import pricing
from app.billing.errors import BudgetExhausted
from app.billing.models import LedgerEntry, LedgerLine, Reservation, UsageAttempt
from app.billing.selectors import price_current
from app.billing.services import (
    budget_set,
    price_set,
    reservation_hold,
    reservation_release,
    reservation_settle,
)
from app.billing.types import Attempt, Buckets, Payer, Rate
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, MakeHold, Spent, used

pytestmark = pytest.mark.django_db
D = Decimal

RATES = (
    Rate(component="input", price=D("1.25")),
    Rate(component="input", price=D("2.5"), min_prompt_tokens=200_001),
    Rate(component="cache_read", price=D("0.3125")),
    Rate(component="cache_write", price=D("1.5625")),
    Rate(component="output", price=D(10)),
    Rate(component="output", price=D(15), min_prompt_tokens=200_001),
    Rate(component="request", price=D("0.01"), per_units=1),
    Rate(component="tool_call", price=D("0.005"), per_units=1),
)
DEARER = (Rate(component="input", price=D(50)), Rate(component="output", price=D(50)))


@pytest.mark.parametrize(
    ("buckets", "units", "amount"),
    [
        # 1000 × 1.25 + 100 × 10 = 2250 millionths, + 0.01
        (Buckets(input=1000, output=100), {}, "0.01225"),
        # 100 × 1.25 + 800 × 0.3125 + 100 × 1.5625 + 60 × 10 + 40 × 10 = 1531.25 millionths, + 0.01
        (Buckets(input=100, cache_read=800, cache_write=100, output=60, reasoning=40), {}, "0.01153125"),
        # the border is the whole prompt, cache included: 200000 stays in the lower tier
        (Buckets(input=199_999, cache_read=1), {}, "0.2599990625"),
        # one more: 199999 × 2.5 + 2 × 0.3125 millionths, + 0.01
        (Buckets(input=199_999, cache_read=2), {}, "0.509998125"),
        # three tool calls at half a cent
        (Buckets(input=8, output=1), {"tool_call": 3}, "0.02502"),
    ],
)
def test_money_by_hand(
    buckets: Buckets, units: dict[str, int], amount: str, roomy: UUID, hold: MakeHold
) -> None:
    price_set(price_key="tiers", rates=RATES, approved_by="tests")
    item = hold(price_key="tiers", input_tokens=buckets.input_total, output_tokens=buckets.output_total)
    reservation_hold(hold=item)

    settled = reservation_settle(
        reservation_id=item.reservation_id, attempts=[Attempt(buckets=buckets, units=units)]
    )

    assert settled.price == D(amount)
    price = price_current("tiers")
    assert price is not None
    quantities = {**buckets.quantities(), **units}
    lines = pricing.charge_lines(price.rates, quantities=quantities, prompt_tokens=buckets.input_total)
    booked = {
        line.component: (line.quantity, line.unit_price, line.amount) for line in LedgerLine.objects.all()
    }
    assert booked == {line.component: (line.quantity, line.rate.price, line.amount) for line in lines}


def test_the_hold_in_sql_is_the_hold_in_python(roomy: UUID, hold: MakeHold) -> None:
    price = price_set(price_key="tiers", rates=RATES, approved_by="tests")
    tiers = pricing.dearest(price.rates)
    for given, cap in [(0, 0), (1, 0), (1000, 500), (200_000, 1), (200_001, 1), (500_000, 4096)]:
        held = reservation_hold(hold=hold(price_key="tiers", input_tokens=given, output_tokens=cap))
        assert held.price == pricing.hold_amount(tiers, input_tokens=given, output_tokens=cap)


def test_settling_twice_changes_nothing(roomy: UUID, hold: MakeHold, spent: Spent) -> None:
    item = hold()
    reservation_hold(hold=item)
    first = reservation_settle(reservation_id=item.reservation_id, attempts=[used(800, 100)])
    second = reservation_settle(reservation_id=item.reservation_id, attempts=[used(5000, 5000)], hold=item)
    released = reservation_release(reservation_id=item.reservation_id)

    assert first.price == second.price == released.price == D("0.001")
    assert (first.replayed, second.replayed, released.replayed) == (False, True, True)
    assert second.entries == first.entries
    assert LedgerEntry.objects.count() == 1
    assert spent("installation") == (D("0.001"), D(0))


def test_releasing_gives_everything_back_and_keeps_the_attempt(
    roomy: UUID, hold: MakeHold, spent: Spent
) -> None:
    item = hold()
    reservation_hold(hold=item)
    failed = Attempt(outcome="failed", source="none", error="Unreachable")
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[failed])

    assert (settled.state, settled.price, settled.entries) == ("released", D(0), ())
    assert UsageAttempt.objects.get().error == "Unreachable"
    assert spent("installation") == (D(0), D(0))


def test_a_retry_costs_us_and_not_the_user(roomy: UUID, hold: MakeHold) -> None:
    price_set(
        price_key=MODEL,
        side="cost",
        rates=[Rate(component="input", price=D("0.5")), Rate(component="output", price=D(1))],
        approved_by="tests",
    )
    item = hold()
    reservation_hold(hold=item)

    settled = reservation_settle(
        reservation_id=item.reservation_id,
        attempts=[used(1000, 10, number=1, billed=False, outcome="failed"), used(1000, 500, number=2)],
    )

    # 1000 × 1 + 500 × 2 against (1000 × 0.5 + 10 × 1) + (1000 × 0.5 + 500 × 1) millionths
    assert (settled.price, settled.cost) == (D("0.002"), D("0.00151"))
    assert [(entry.price, entry.cost) for entry in settled.entries] == [
        (D(0), D("0.00051")),
        (D("0.002"), D("0.001")),
    ]
    assert (settled.input_tokens, settled.output_tokens) == (1000, 500)


def test_a_release_after_use_books_our_cost_alone(roomy: UUID, hold: MakeHold, spent: Spent) -> None:
    price_set(price_key=MODEL, side="cost", rates=[Rate(component="input", price=D(1))], approved_by="tests")
    item = hold()
    reservation_hold(hold=item)
    settled = reservation_release(reservation_id=item.reservation_id, attempts=[used(1000, 0)])
    assert (settled.state, settled.price, settled.cost) == ("released", D(0), D("0.001"))
    assert spent("installation") == (D(0), D(0))


def test_each_attempt_is_priced_by_its_own_model(roomy: UUID, hold: MakeHold) -> None:
    price_set(
        price_key="other",
        rates=[Rate(component="input", price=D(7)), Rate(component="output", price=D(7))],
        approved_by="tests",
    )
    item = hold()
    reservation_hold(hold=item)
    settled = reservation_settle(
        reservation_id=item.reservation_id,
        attempts=[used(1000, 0, number=1), used(1000, 0, number=2, price_key="other")],
    )
    assert [entry.price for entry in settled.entries] == [D("0.001"), D("0.007")]


def test_more_than_was_held_is_booked_in_full_and_blocks_the_next(
    priced: None, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="money", limit=D("0.002"), period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(1000, 900)])

    assert (settled.price, settled.overshoot) == (D("0.0028"), True)
    assert spent("team") == (D("0.0028"), D(0))
    assert LedgerEntry.objects.get().overshoot
    with pytest.raises(BudgetExhausted, match="is reached"):
        reservation_hold(hold=hold(input_tokens=1, output_tokens=0))


def test_an_overshoot_is_known_to_the_very_next_hold(priced: None, payer: Payer, hold: MakeHold) -> None:
    """Also where the limit still seems to have room for what was held."""
    budget_set(scope="team", unit="money", limit=D("0.004"), period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(1000, 1450)])
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold(input_tokens=101, output_tokens=0))
    assert reservation_hold(hold=hold(input_tokens=100, output_tokens=0)).price == D("0.0001")


@pytest.mark.parametrize(
    ("given", "generated", "overshoot"),
    [(1000, 500, False), (1001, 499, False), (1001, 500, True), (100, 501, True)],
)
def test_overshoot_is_beyond_the_hold_or_beyond_the_cap(
    given: int, generated: int, overshoot: bool, roomy: UUID, hold: MakeHold
) -> None:
    item = hold()
    reservation_hold(hold=item)
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(given, generated)])
    assert settled.overshoot is overshoot


def test_the_price_of_the_hold_is_the_price_of_the_charge(roomy: UUID, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    price_set(
        price_key=MODEL,
        rates=[Rate(component="input", price=D(50)), Rate(component="output", price=D(50))],
        approved_by="t",
    )
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert settled.price == D("0.002")
    later = hold()
    assert reservation_hold(hold=later).price == D("0.075")


def test_an_unpriced_component_is_flagged_and_not_free(roomy: UUID, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    settled = reservation_settle(
        reservation_id=item.reservation_id, attempts=[Attempt(buckets=Buckets(input=100, input_audio=50))]
    )
    assert (settled.price, settled.price_missing) == (D("0.0001"), True)
    audio = LedgerLine.objects.get(component="input_audio")
    assert (audio.quantity, audio.unit_price, audio.amount) == (50, None, None)


def test_a_settlement_commits_durably_though_a_hold_does_not(roomy: UUID, hold: MakeHold) -> None:
    item = hold()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")
        reservation_settle(reservation_id=item.reservation_id, attempts=[used()], hold=item)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
        reservation_hold(hold=hold())
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("off",)


def test_what_the_server_said_is_kept(roomy: UUID, hold: MakeHold) -> None:
    item = hold(turn_id=uuid7(), request_id="req-1", deployment_id=uuid7())
    reservation_hold(hold=item)
    raw = {"prompt_tokens": 1000, "cost": 0.00012345678901234567, "details": {"cached": None}}
    reservation_settle(
        reservation_id=item.reservation_id,
        attempts=[
            used(
                outcome="stopped", requested_model="small", served_model="small-2026", upstream_id="u1",
                finish_reason="stop", finish_raw="end", raw_usage=raw, local_input_tokens=998, local_output_tokens=None,
                tokenizer="o200k_base", ttft_ms=31, total_ms=900, flags=("truncated",), estimated=True,
                estimate_reason="client_gone", source="local",
            )
        ],
    )  # fmt: skip
    attempt = UsageAttempt.objects.get()
    assert attempt.raw_usage == raw
    assert (attempt.turn_id, attempt.request_id, attempt.deployment_id) == (
        item.turn_id,
        "req-1",
        item.deployment_id,
    )
    assert (attempt.local_input_tokens, attempt.local_output_tokens, attempt.ttft_ms) == (998, None, 31)
    assert (attempt.served_model, attempt.flags, attempt.estimate_reason) == (
        "small-2026",
        ["truncated"],
        "client_gone",
    )
    entry = LedgerEntry.objects.get()
    assert (entry.model, entry.estimated, entry.effective_at) == (
        "small",
        True,
        Reservation.objects.get().effective_at,
    )

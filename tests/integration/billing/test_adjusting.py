"""Late truth about one call, and the hours of our own servers: entries without a call. Amounts by hand."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.billing import tasks
from app.billing.errors import PriceConflict
from app.billing.late import AdjustmentConflict, EntryMissing, EntryReplaced, entry_adjust, provisioned_book
from app.billing.models import LedgerEntry, LedgerLine, PriceVersion, Reservation
from app.billing.rates import exchange_rate_set, provisioned_end, provisioned_set, team_rate_set
from app.billing.selectors import totals
from app.billing.services import (
    budget_set,
    price_set,
    reservation_heartbeat,
    reservation_hold,
    reservation_settle,
    reservations_sweep,
)
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, Spent, used

pytestmark = pytest.mark.django_db
D = Decimal
HOURLY = D("2.5")


def book(item: Hold, *attempts: Attempt) -> LedgerEntry:
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=attempts or [used()])
    return LedgerEntry.objects.filter(reservation_id=item.reservation_id).earliest("id")


def adjust(entry: LedgerEntry, key: str = "gen-1", **changes: Any) -> Any:
    values: dict[str, Any] = {"buckets": Buckets(input=1200, output=400), "reason": "invoice", "actor": "t"}
    return entry_adjust(entry_id=entry.id, dedupe_key=key, **values | changes)


def test_the_difference_is_booked_at_the_versions_of_the_first(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    """Was 1000 × 1 + 500 × 2 = 2000, 100 of 1200 were read from the cache: 1100 + 10 + 800 = 1910."""
    budget_set(scope="team", unit="tokens", limit=10**6, period="month", team_id=payer.team_id)
    entry = book(hold())
    price_set(price_key=MODEL, rates=[Rate(component="input", price=D(9))], approved_by="t")
    truth = Buckets(input=1100, cache_read=100, output=400)

    row = adjust(entry, buckets=truth)

    assert (row.kind, row.price, row.attempt) == ("adjust", D("-0.00009"), 1)
    found = LedgerEntry.objects.get(id=row.id)
    assert (found.supersedes_id, found.price_version_id) == (entry.id, entry.price_version_id)
    assert (found.effective_at, found.late, found.dedupe_key) == (entry.effective_at, True, "adjust:gen-1")
    assert (found.input_tokens, found.output_tokens) == (200, -100)
    lines = LedgerLine.objects.filter(entry_id=row.id).values_list("component", "quantity", "amount")
    assert set(lines) == {
        ("input", 100, D("0.0001")), ("cache_read", 100, D("0.00001")), ("output", -100, D("-0.0002")),
    }  # fmt: skip
    assert spent("installation") == (D("0.00191"), D(0))
    assert spent("team", "tokens") == (1600, 0)
    reservation = Reservation.objects.get()
    assert (reservation.price, reservation.input_tokens, reservation.output_tokens) == (
        D("0.00191"),
        1200,
        400,
    )
    assert adjust(entry, buckets=Buckets(input=1)) == row
    assert adjust(entry, "gen-2", buckets=truth) is None
    assert adjust(entry, "gen-3", buckets=Buckets(input=1000, output=500)).price == D("0.00009")
    assert totals().price == D("0.002")
    assert ledger_verify().differences == ()


def test_truth_in_another_tier_takes_the_old_lines_back(hold: MakeHold, roomy: UUID) -> None:
    """At 1000 tokens: 1000 × 1. At 1001 all of it has the higher rate: 1001 × 3. Difference 2003 millionths."""
    rates = [Rate(component="input", price=D(1)), Rate(component="input", price=D(3), min_prompt_tokens=1001)]
    price_set(price_key="tiered", rates=rates, approved_by="t")
    entry = book(hold(price_key="tiered", output_tokens=0), used(1000, 0))
    row = adjust(entry, buckets=Buckets(input=1001))
    assert row.price == D("0.002003")
    assert sorted(LedgerLine.objects.filter(entry_id=row.id).values_list("quantity", "amount")) == [
        (-1000, D("-0.001")), (1001, D("0.003003")),
    ]  # fmt: skip
    assert ledger_verify().differences == ()


def test_cost_mark_up_and_exchange_rate_are_those_of_the_first(
    hold: MakeHold, roomy: UUID, payer: Payer
) -> None:
    """Price × 2 of 1 a token; cost 10 USD at 0.5. 100 tokens more: 0.0002 and 0.001 USD = 0.0005."""
    price_set(
        price_key=MODEL,
        rates=[Rate(component="input", price=D(10))],
        side="cost",
        currency="USD",
        approved_by="t",
    )
    exchange_rate_set(currency="USD", rate=D("0.5"), entered_by="t")
    team_rate_set(team_id=payer.team_id, factor=D(2), approved_by="t")
    entry = book(hold(output_tokens=0), used(1000, 0))
    exchange_rate_set(currency="USD", rate=D(7), entered_by="t")
    team_rate_set(team_id=payer.team_id, factor=D(9), approved_by="t")
    row = adjust(entry, buckets=Buckets(input=1100))
    assert (row.price, row.cost) == (D("0.0002"), D("0.0005"))
    assert ledger_verify().differences == ()


def test_what_nobody_was_billed_for_moves_only_its_cost(hold: MakeHold, roomy: UUID, spent: Spent) -> None:
    price_set(price_key=MODEL, rates=PRICE, side="cost", approved_by="t")
    entry = book(hold(), used(billed=False))
    assert (entry.price, entry.cost) == (0, D("0.002"))
    row = adjust(entry, buckets=Buckets(input=2000, output=500))
    assert (row.price, row.cost) == (0, D("0.001"))
    assert spent("installation") == (0, 0)
    assert ledger_verify().differences == ()


def test_a_component_without_a_price_stays_unknown(hold: MakeHold, roomy: UUID) -> None:
    row = adjust(book(hold()), buckets=Buckets(input=1000, output=500, input_audio=7))
    assert row.price == 0
    assert LedgerEntry.objects.get(id=row.id).price_missing


def test_what_cannot_be_adjusted_is_said(hold: MakeHold, roomy: UUID) -> None:
    entry, other = book(hold()), book(hold())
    row = adjust(entry)
    with pytest.raises(AdjustmentConflict):
        adjust(other)
    for missing in (row.id, uuid7()):
        with pytest.raises(EntryMissing):
            entry_adjust(entry_id=missing, buckets=Buckets(), reason="r", actor="t", dedupe_key="k")
    for changes in ({"key": " "}, {"reason": ""}):
        with pytest.raises(InvalidInput, match="needs the key"):
            adjust(other, **changes)


def test_a_charge_that_was_taken_back_is_not_adjusted_and_an_adjusted_one_is_taken_back_whole(
    hold: MakeHold, roomy: UUID
) -> None:
    item = hold()
    reservation_hold(hold=item)
    reservation_heartbeat(reservation_id=item.reservation_id, output_tokens=100)
    Reservation.objects.update(expires_at="2020-01-01T00:00:00Z")
    reservations_sweep()
    guess = LedgerEntry.objects.get()
    adjust(guess)
    assert reservation_settle(reservation_id=item.reservation_id, attempts=[used()]).price == D("0.002")
    assert totals().price == D("0.002")
    assert ledger_verify().differences == ()
    with pytest.raises(EntryReplaced):
        adjust(guess, "another")


def hours_of(deployment: UUID) -> list[datetime]:
    entries = LedgerEntry.objects.filter(deployment_id=deployment, call_kind="provisioned")
    return list(entries.order_by("effective_at").values_list("effective_at", flat=True))


def test_an_own_server_is_booked_hour_by_hour_once_and_caught_up() -> None:
    deployment = uuid7()
    start = provisioned_set(deployment_id=deployment, per_hour=HOURLY, approved_by="t").effective_from
    assert (start.minute, start.second, start.microsecond) == (0, 0, 0)
    almost = start + timedelta(minutes=59, seconds=59)
    assert provisioned_book(at=almost) == 0
    assert provisioned_book(at=start + timedelta(hours=1)) == 1
    assert provisioned_book(at=start + timedelta(hours=1)) == 0
    # Down for two days.
    assert provisioned_book(at=almost + timedelta(hours=48)) == 47
    assert hours_of(deployment) == [start + timedelta(hours=n) for n in range(48)]
    entry = LedgerEntry.objects.latest("effective_at")
    assert (entry.price, entry.cost, entry.team_id) == (0, HOURLY, None)
    assert entry.dedupe_key == f"provisioned/{deployment}:{entry.effective_at:%Y-%m-%dT%H}"
    assert totals().cost == D(120)
    assert ledger_verify().differences == ()
    assert tasks.provisioned_book() == 0


def test_a_new_hourly_cost_begins_with_the_next_hour_and_an_end_ends() -> None:
    deployment = uuid7()
    exchange_rate_set(currency="USD", rate=D("0.9"), entered_by="t")
    start = provisioned_set(
        deployment_id=deployment, per_hour=D(2), currency="USD", approved_by="t"
    ).effective_from
    with pytest.raises(PriceConflict):
        provisioned_set(deployment_id=deployment, per_hour=D(3), approved_by="t")
    PriceVersion.objects.update(effective_to=start + timedelta(hours=2))
    assert provisioned_book(at=start + timedelta(days=9)) == 2
    entry = LedgerEntry.objects.first()
    assert (entry.cost, entry.cost_native, entry.cost_currency) == (D("1.8"), D(2), "USD")
    with pytest.raises(PriceConflict, match="nothing in force"):
        provisioned_end(deployment_id=deployment)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"per_hour": D(-1)}, "0 or more"),
        ({"currency": "USD"}, "no exchange rate from USD"),
        ({"currency": "us"}, "no currency"),
    ],
)
def test_an_hourly_cost_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        provisioned_set(**{"deployment_id": uuid7(), "per_hour": D(1), "approved_by": "t"} | changes)


def test_calls_of_a_server_paid_by_the_hour_are_no_cost_of_their_own(hold: MakeHold, roomy: UUID) -> None:
    deployment = uuid7()
    price_set(price_key=MODEL, rates=PRICE, side="cost", approved_by="t")
    start = provisioned_set(deployment_id=deployment, per_hour=D(1), approved_by="t").effective_from
    before = book(hold(deployment_id=deployment, effective_at=now()))
    after = book(hold(deployment_id=deployment, effective_at=start))
    elsewhere = book(hold(deployment_id=uuid7(), effective_at=start))
    assert [e.cost for e in (before, after, elsewhere)] == [D("0.002"), None, D("0.002")]
    assert after.price == D("0.002")


def test_truth_that_only_moves_tokens_between_input_and_output_is_on_the_call(
    roomy: UUID, hold: MakeHold
) -> None:
    entry = book(hold())
    adjust(entry, buckets=Buckets(input=1005, output=495))
    row = Reservation.objects.get(id=entry.reservation_id)
    assert (row.input_tokens, row.output_tokens) == (1005, 495)


def test_an_estimate_adjusted_under_a_long_key_still_gives_way_to_the_truth(
    roomy: UUID, hold: MakeHold
) -> None:
    """The entry that takes the adjustment back has a key that is longer still."""
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()], by_sweeper=True)
    entry = LedgerEntry.objects.get(reservation_id=item.reservation_id)
    for key in ("k" * 300 + "a", "k" * 300 + "b"):
        assert adjust(entry, key=key, buckets=Buckets(input=1200 + ord(key[-1]))) is not None
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(10, 5)])
    assert settled.price == D("0.00002")
    assert ledger_verify().differences == ()

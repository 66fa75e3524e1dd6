"""A team's own terms, exchange rates and the witness of a provider: amounts by hand, versions pinned on the entry."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from app.billing.errors import PriceConflict, PriceMissing
from app.billing.models import ExchangeRate, LedgerEntry, LedgerLine, PriceVersion, TeamRate, UsageAttempt
from app.billing.rates import exchange_rate_set, price_end, team_rate_end, team_rate_set
from app.billing.selectors import price_current
from app.billing.services import price_set, reservation_hold, reservation_settle
from app.billing.types import Hold, Payer, Rate
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, used

pytestmark = pytest.mark.django_db
D = Decimal
FIXED = (Rate(component="input", price=D(5)), Rate(component="output", price=D(5)))
USD = (Rate(component="input", price=D(3)), Rate(component="output", price=D(15)))


def book(item: Hold, **changes: Any) -> LedgerEntry:
    """1000 in, 500 out."""
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(**changes)])
    return LedgerEntry.objects.get(reservation_id=item.reservation_id)


# General: 1000 × 1 + 500 × 2 = 2000 millionths. Fixed: 1500 × 5 = 7500.
@pytest.mark.parametrize(
    ("terms", "millionths"),
    [
        ((), 2000),
        (("all × 1.5",), 3000),
        (("all × 1.5", "key × 2"), 4000),
        (("all × 1.5", "fixed all"), 7500),
        (("key × 2", "fixed all"), 4000),
        (("key × 2", "fixed key", "fixed all"), 7500),
        (("all × 0",), 0),
    ],
)
def test_the_nearest_of_a_teams_terms_counts_for_hold_charge_and_showing(
    terms: tuple[str, ...], millionths: int, roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    team = payer.team_id
    for term in terms:
        what, _, factor = term.partition(" × ")
        key = {"all": "", "key": MODEL, "fixed key": MODEL, "fixed all": "*"}[what]
        if factor:
            team_rate_set(team_id=team, price_key=key, factor=D(factor), approved_by="t")
        else:
            price_set(price_key=key, rates=FIXED, team_id=team, approved_by="t")
    expected = D(millionths).scaleb(-6)
    item = hold()
    assert reservation_hold(hold=item).price == expected
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    entry = LedgerEntry.objects.get()
    assert entry.price == expected
    assert (entry.team_rate is not None) is (millionths in {3000, 4000, 0})
    shown = price_current(MODEL, team_id=team)
    assert entry.price_version_id == shown.version_id
    assert (
        sum(r.price * {"input": 1000, "output": 500}.get(r.component, 0) for r in shown.rates) == millionths
    )
    assert ledger_verify().differences == ()
    # Nobody else has these terms.
    assert reservation_hold(hold=hold(payer=Payer(team_id=uuid7()))).price == D("0.002")


def test_a_marked_up_unit_price_is_rounded_half_even_at_nine_decimals(
    payer: Payer, hold: MakeHold, roomy: UUID
) -> None:
    """0.000000005 × 0.5 = 2.5e-9 → 2e-9; 0.000000007 × 0.5 = 3.5e-9 → 4e-9. 1000 × 2e-15 + 500 × 4e-15 = 4e-12."""
    rates = (Rate(component="input", price=D("5e-9")), Rate(component="output", price=D("7e-9")))
    price_set(price_key="tiny", rates=rates, approved_by="t")
    team_rate_set(team_id=payer.team_id, factor=D("0.5"), approved_by="t")
    assert book(hold(price_key="tiny")).price == D("4e-12")
    assert sorted(LedgerLine.objects.values_list("unit_price", flat=True)) == [D("2e-9"), D("4e-9")]


def test_a_rate_is_pinned_at_the_hold_and_dated(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    team = payer.team_id
    first = team_rate_set(team_id=team, factor=D(2), approved_by="t")
    item = hold()
    reservation_hold(hold=item)
    second = team_rate_set(team_id=team, factor=D(3), approved_by="t")
    later = hold()
    assert reservation_hold(hold=later).price == D("0.006")
    for each in (item, later):
        reservation_settle(reservation_id=each.reservation_id, attempts=[used()])
    booked = LedgerEntry.objects.order_by("reservation_id").values_list("price", "team_rate_id")
    assert list(booked) == [(D("0.004"), first.id), (D("0.006"), second.id)]
    team_rate_end(team_id=team)
    assert reservation_hold(hold=hold()).price == D("0.002")
    first.refresh_from_db()
    assert first.effective_to == second.effective_from
    assert str(first).startswith("× 2 on all prices from ")
    with pytest.raises(PriceConflict, match="nothing in force"):
        team_rate_end(team_id=team)


def test_a_price_ends_without_another(priced: None, payer: Payer) -> None:
    price_set(price_key=MODEL, rates=FIXED, team_id=payer.team_id, approved_by="t")
    price_end(price_key=MODEL, team_id=payer.team_id)
    assert price_current(MODEL, team_id=payer.team_id).rates[0].price == D(1)
    price_end(price_key=MODEL)
    assert price_current(MODEL) is None


def test_rates_begin_now_or_later(payer: Payer) -> None:
    team, past, later = payer.team_id, now() - timedelta(seconds=1), now() + timedelta(days=1)
    with pytest.raises(PriceConflict, match="from now on"):
        team_rate_set(team_id=team, factor=D(1), approved_by="t", effective_from=past)
    team_rate_set(team_id=team, factor=D(1), approved_by="t", effective_from=later)
    with pytest.raises(PriceConflict, match="later rate"):
        team_rate_set(team_id=team, factor=D(2), approved_by="t")
    with pytest.raises(PriceConflict, match="from now on"):
        exchange_rate_set(currency="USD", rate=D(1), entered_by="t", effective_from=past)
    exchange_rate_set(currency="USD", rate=D(1), entered_by="t", effective_from=later)
    with pytest.raises(PriceConflict, match="that very instant"):
        exchange_rate_set(currency="USD", rate=D(2), entered_by="t", effective_from=later)


@pytest.mark.parametrize("factor", [D(-1), D(100), D("0.0000001"), D("NaN"), 1.5])
def test_a_factor_that_cannot_be_is_refused(factor: Any, payer: Payer) -> None:
    with pytest.raises(InvalidInput, match="factor"):
        team_rate_set(team_id=payer.team_id, factor=factor, approved_by="t")


@pytest.mark.parametrize(
    ("currency", "rate", "words"),
    [
        ("EUR", D(1), "own currency"),
        ("usd", D(1), "three capital letters"),
        ("USD", D(0), "above 0"),
        ("USD", D("1e-10"), "9 decimals"),
        ("USD", 0.9, "above 0"),
    ],
)
def test_an_exchange_rate_that_cannot_be_is_refused(currency: str, rate: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        exchange_rate_set(currency=currency, rate=rate, entered_by="t")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"currency": "USD"}, "User prices are in EUR"),
        ({"price_key": "*"}, "team's own price"),
        ({"price_key": ""}, "key of a model"),
        ({"rates": [Rate(component="input", price=D(10**7))]}, "per million tokens"),
    ],
)
def test_a_price_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        price_set(**{"price_key": MODEL, "rates": PRICE, "approved_by": "t"} | changes)
    assert not PriceVersion.objects.exists()


def test_a_cost_in_another_currency_is_converted_at_the_rate_of_its_day(roomy: UUID, hold: MakeHold) -> None:
    """1000 × 3 + 500 × 15 = 10500 millionths USD; × 0.923456789 = 0.0096962962845."""
    price_set(price_key=MODEL, rates=USD, side="cost", currency="USD", approved_by="t")
    without = book(hold())
    assert (without.cost, without.cost_native, without.cost_currency) == (None, D("0.0105"), "USD")
    assert without.price == D("0.002")
    rate = exchange_rate_set(currency="USD", rate=D("0.923456789"), entered_by="t")
    entry = book(hold())
    assert (entry.cost, entry.cost_native) == (D("0.0096962962845"), D("0.0105"))
    assert (entry.exchange_rate_id, entry.currency) == (rate.id, "EUR")
    exchange_rate_set(currency="USD", rate=D(2), entered_by="t")
    assert book(hold()).cost == D("0.021")
    assert ledger_verify().differences == ()
    assert str(rate).startswith("1 USD = 0.923456789 EUR from ")


def test_a_price_in_no_mode_of_its_own_is_missing(roomy: UUID, hold: MakeHold) -> None:
    with pytest.raises(PriceMissing):
        reservation_hold(hold=hold(mode="batch"))
    price_set(price_key=MODEL, rates=FIXED, mode="batch", approved_by="t")
    assert reservation_hold(hold=hold(mode="batch")).price == D("0.0075")


@pytest.mark.parametrize(
    ("reported", "currency", "flags"),
    [
        (D("0.0105"), "USD", []),
        # 5 % of the greater of the two is still agreement
        (D("0.0110526"), "USD", []),
        (D("0.0110527"), "USD", ["cost_disagrees"]),
        (D("0"), "USD", ["cost_disagrees"]),
        # Nothing to compare it with
        (D("9"), "GBP", []),
        (None, "USD", []),
    ],
)
def test_what_a_provider_reports_is_a_witness(
    reported: Decimal | None, currency: str, flags: list[str], roomy: UUID, hold: MakeHold
) -> None:
    price_set(price_key=MODEL, rates=USD, side="cost", currency="USD", approved_by="t")
    entry = book(hold(), reported_cost=reported, reported_currency=currency)
    attempt = UsageAttempt.objects.get()
    assert entry.cost_native == D("0.0105")
    assert (attempt.flags, attempt.reported_cost) == (flags, reported)
    assert attempt.reported_currency == (currency if reported is not None else "")


def test_a_component_without_a_cost_is_said(roomy: UUID, hold: MakeHold) -> None:
    price_set(price_key=MODEL, rates=[Rate(component="input", price=D(1))], side="cost", approved_by="t")
    assert book(hold()).cost == D("0.001")
    assert UsageAttempt.objects.get().flags == ["cost_incomplete"]


@pytest.mark.parametrize("cost", [1.5, D(-1), D("NaN")])
def test_a_witness_is_exact(cost: Any) -> None:
    with pytest.raises(ValueError, match="exact amount"):
        used(reported_cost=cost)


def test_rates_are_never_changed_nor_overlap(payer: Payer) -> None:
    rate = team_rate_set(team_id=payer.team_id, factor=D(1), approved_by="t")
    exchange_rate_set(currency="USD", rate=D(1), entered_by="t")
    for statement, words in (
        ("UPDATE billing_teamrate SET factor = 2", "only closed"),
        ("DELETE FROM billing_teamrate", "never changed or removed"),
        ("UPDATE billing_exchangerate SET rate = 2", "never changed or removed"),
        ("DELETE FROM billing_exchangerate", "never changed or removed"),
    ):
        refused = pytest.raises(DatabaseError, match=words)
        with refused, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    with pytest.raises(IntegrityError, match="no_overlap"), transaction.atomic():
        TeamRate.objects.create(team_id=rate.team_id, factor=2, effective_from=now(), approved_by="t")
    assert ExchangeRate.objects.count() == 1

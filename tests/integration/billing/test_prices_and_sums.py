"""Price versions, ledger sums and the replay that checks them."""

from datetime import date, timedelta
from decimal import Decimal
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from app.billing import tasks
from app.billing.errors import PriceConflict
from app.billing.models import (
    Budget,
    BudgetWindow,
    LedgerEntry,
    LedgerLine,
    PriceComponent,
    PriceVersion,
    Reservation,
    ReservationLine,
    UsageAttempt,
)
from app.billing.selectors import entries_of, ledger_rows, price_current, price_versions, spend, totals
from app.billing.services import budget_set, price_set, reservation_hold, reservation_settle
from app.billing.types import Hold, Payer, Rate, SpendFilter
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, used

pytestmark = pytest.mark.django_db
D = Decimal
SATURDAY, SUNDAY = date(2031, 3, 29), date(2031, 3, 30)
FREE = (Rate(component="input", price=D(0)), Rate(component="output", price=D(0)))


def book(item: Hold, given: int, generated: int) -> None:
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(given, generated)])


def test_a_new_version_closes_the_old_one_at_the_same_instant() -> None:
    first = price_set(price_key=MODEL, rates=PRICE, approved_by="a")
    second = price_set(price_key=MODEL, rates=FREE, approved_by="b")
    newest, oldest = price_versions(MODEL)
    assert (newest.version_id, oldest.version_id) == (second.version_id, first.version_id)
    assert oldest.effective_to == newest.effective_from
    current = price_current(MODEL)
    assert current is not None
    assert current.version_id == second.version_id
    before = price_current(MODEL, at=oldest.effective_from)
    assert before is not None
    assert before.version_id == first.version_id


def test_a_price_can_be_set_for_later_but_not_for_the_past() -> None:
    price_set(price_key=MODEL, rates=PRICE, approved_by="a")
    with pytest.raises(PriceConflict, match="from now on"):
        price_set(price_key=MODEL, rates=FREE, approved_by="a", effective_from=now() - timedelta(seconds=1))
    later = now() + timedelta(days=3)
    price_set(price_key=MODEL, rates=FREE, approved_by="a", effective_from=later)
    present, then = price_current(MODEL), price_current(MODEL, at=later)
    assert present is not None
    assert then is not None
    assert (present.rates[0].price, then.rates[0].price) == (D(1), D(0))
    with pytest.raises(PriceConflict, match="later version"):
        price_set(price_key=MODEL, rates=PRICE, approved_by="a")


def test_a_team_may_have_a_rate_of_its_own(payer: Payer, hold: MakeHold, roomy: UUID) -> None:
    price_set(price_key=MODEL, rates=FREE, approved_by="a", team_id=payer.team_id)
    assert reservation_hold(hold=hold()).price == 0
    assert reservation_hold(hold=hold(payer=Payer(team_id=uuid7()))).price == D("0.002")
    own = price_current(MODEL, team_id=payer.team_id)
    assert own is not None
    assert own.team_id == payer.team_id


def test_an_unknown_price_is_none() -> None:
    assert price_current("never-priced") is None
    assert price_current(MODEL, side="cost") is None


def test_nothing_is_written_when_a_rate_is_refused() -> None:
    with pytest.raises(InvalidInput):
        price_set(price_key=MODEL, rates=[], approved_by="a")
    assert price_versions(MODEL) == []


def test_a_budget_is_checked_before_it_is_written(payer: Payer) -> None:
    with pytest.raises(InvalidInput, match="takes no account_id"):
        budget_set(scope="team", unit="money", limit=1, period="day", account_id=payer.account_id)


def test_sums_by_every_group(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    deployment = uuid7()
    other = Payer(team_id=uuid7(), account_id=uuid7())
    book(hold(deployment_id=deployment), 1000, 500)
    book(hold(deployment_id=deployment, kind="embedding", output_tokens=0), 500, 0)
    book(hold(payer=other), 100, 50)

    everything = totals()
    assert (everything.price, everything.entries, everything.requests) == (D("0.0027"), 3, 2)
    assert (everything.input_tokens, everything.output_tokens, everything.cost) == (1600, 550, None)
    assert {row.group: row.price for row in spend(group_by="team")} == {
        payer.team_id: D("0.0025"),
        other.team_id: D("0.0002"),
    }
    assert [row.group for row in spend(group_by="person")] == [payer.account_id, other.account_id]
    assert {row.group for row in spend(group_by="key")} == {payer.key_id, None}
    assert {row.group: row.price for row in spend(group_by="kind")} == {
        "chat": D("0.0022"),
        "embedding": D("0.0005"),
    }
    assert [row.group for row in spend(group_by="model")] == [MODEL]
    assert [row.group for row in spend(group_by="deployment", team_id=payer.team_id)] == [deployment]
    assert totals(where=SpendFilter(team_ids=())).entries == 0
    assert totals(where=SpendFilter(kind="chat"), team_id=payer.team_id).price == D("0.002")
    assert totals(to=now() - timedelta(hours=1)).entries == 0


@pytest.mark.parametrize(
    ("tz", "days"),
    [("UTC", [date(2031, 3, 29)] * 2), ("Europe/Berlin", [date(2031, 3, 29), date(2031, 3, 30)])],
)
def test_days_are_days_of_a_zone(tz: str, days: list[date], roomy: UUID, hold: MakeHold) -> None:
    for instant in ("2031-03-29T22:59:59.999999+00:00", "2031-03-29T23:00:00+00:00"):
        book(hold(effective_at=now().fromisoformat(instant)), 10, 1)
    rows = spend(group_by="day", tz=tz)
    assert [row.group for row in rows for _ in range(row.entries)] == days


def test_rows_come_newest_first_page_by_page(roomy: UUID, hold: MakeHold) -> None:
    items = [hold() for _ in range(5)]
    for item in items:
        book(item, 10, 1)
    first = ledger_rows(limit=3)
    rest = ledger_rows(limit=3, before=first[-1].id)
    assert [row.reservation_id for row in first + rest] == [item.reservation_id for item in reversed(items)]
    assert [row.price for row in entries_of(items[0].reservation_id)] == [D("0.000012")]


def test_verify_finds_a_window_that_was_changed_and_rebuilds_it(roomy: UUID, hold: MakeHold) -> None:
    book(hold(), 1000, 500)
    reservation_hold(hold=hold())
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_fold(array_agg(id)) FROM billing_budgetwindow")
    window = BudgetWindow.objects.get()
    assert (window.spent, window.held) == (D("0.002"), D("0.002"))
    BudgetWindow.objects.update(spent=D("0.002000000000001"))

    out = StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("ledger_verify", stdout=out)
    assert exit_.value.code == 1
    assert "has 0.002000000000001, its rows give 0.002000000000000" in out.getvalue()

    out = StringIO()
    call_command("ledger_verify", "--rebuild", stdout=out)
    assert "every balance agrees to the digit" in out.getvalue()
    assert BudgetWindow.objects.get().spent == D("0.002")


def test_verify_finds_a_charge_that_no_longer_adds_up(roomy: UUID, hold: MakeHold) -> None:
    book(hold(), 1000, 500)
    assert ledger_verify().price == D("0.002")
    Reservation.objects.update(price=D("0.001"))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE billing_reservationline SET spent = 0")
    assert {item.check for item in ledger_verify().differences} == {
        "reservation = sum of its entries",
        "spent of a reservation in a window = what its entries say",
    }


def test_the_sweep_task_calls_the_service(roomy: UUID, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    assert tasks.reservations_sweep() == 0
    Reservation.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert tasks.reservations_sweep() == 1


def test_rows_name_themselves(roomy: UUID, hold: MakeHold) -> None:
    """What `/admin` and a log line show; never a person's name."""
    book(hold(effective_at=now().fromisoformat("2031-03-29T12:00:00+00:00")), 10, 1)
    shown = [str(Budget.objects.get(id=roomy))]
    shown += [str(model.objects.first()) for model in (BudgetWindow, ReservationLine, PriceComponent)]
    assert shown[:2] == ["everything: 1000 money a month", "i money from 2031-03-01 00:00"]
    assert shown[2].startswith("0.002000000000000 money of ")
    assert shown[3] == "input 1.000000000 per 1000000"
    entry, line = LedgerEntry.objects.get(), LedgerLine.objects.order_by("id").first()
    assert str(entry) == f"charge 0.000012000000000 EUR {entry.reservation_id}:1"
    assert str(line) in {"price input 10", "price output 1"}
    assert str(UsageAttempt.objects.get()) == f"{entry.reservation_id}/1 completed"
    assert str(Reservation.objects.get()) == f"chat {entry.reservation_id} settled"
    assert str(PriceVersion.objects.get()).startswith("test-model price from ")


def test_spend_of_one_deployment_by_day(roomy: UUID, hold: MakeHold) -> None:
    deployment = uuid7()
    for each in (deployment, uuid7()):
        book(hold(deployment_id=each), 10, 1)
    (row,) = spend(group_by="day", deployment_id=deployment)
    assert row.entries == 1

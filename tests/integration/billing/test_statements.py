"""Statements: their lines, rounded once, add up to the ledger, on the page, as CSV and as JSON."""

import csv
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from pytest_django import Settings

from app.accounts.models import Team
from app.billing.credit import credit_grant
from app.billing.models import LedgerEntry, Statement, StatementEntry
from app.billing.services import price_set, reservation_hold, reservation_settle
from app.billing.statement_export import COLUMNS, statement_csv, statement_json, summary_json
from app.billing.statement_sheet import statement_sheet
from app.billing.statement_sums import half_even, statement_get, statement_sums, statements_list
from app.billing.statements import (
    places_of,
    statements_draft,
    statements_issue_due,
)
from app.billing.types import Payer, Rate
from app.common.errors import NotFound
from tests.integration.billing.conftest import MakeHold, used
from tests.integration.billing.statements import YEAR, D, adds_up, at, book, issued_all, research

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("roomy", "db")]


@pytest.fixture
def payer() -> Payer:
    return research()


ROUNDED = [
    ("0.005", "0.00"), ("0.015", "0.02"), ("0.025", "0.02"), ("-0.005", "0.00"), ("-0.015", "-0.02"),
    ("0.0050000001", "0.01"), ("0.0149999999", "0.01"), ("2.5", "2.50"), ("0", "0.00"), ("-1.004", "-1.00"),
]  # fmt: skip


@pytest.mark.parametrize(("exact", "rounded"), ROUNDED)
def test_half_goes_to_the_even_one_in_both_languages(exact: str, rounded: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_even(%s::numeric, 2)", [exact])
        assert cursor.fetchone()[0] == half_even(D(exact), 2) == D(rounded)


@pytest.mark.parametrize(("currency", "places"), [("EUR", 2), ("JPY", 0), ("KWD", 3)])
def test_a_currency_has_its_own_decimals(
    settings: Settings, hold: MakeHold, currency: str, places: int
) -> None:
    assert places_of(currency) == places
    book(hold, at(1), given=5_000_000, generated=1000)
    settings.CURRENCY = currency
    (sheet,) = issued_all(at(3))
    assert sheet.lines[0].amount == half_even(sheet.lines[0].exact, places)
    adds_up(sheet)


def test_lines_are_model_component_price_and_cost_centre(hold: MakeHold, payer: Payer) -> None:
    book(hold, at(1), given=5000, generated=7500)
    book(hold, at(1, 20), given=10_000, generated=0)
    book(hold, at(1, 21), payer=Payer(team_id=payer.team_id), given=5000, generated=0)
    (sheet,) = issued_all(at(3))
    shown = [
        (x.cost_centre, x.model, x.component, x.quantity, x.exact, x.amount) for x in sheet.section("charge")
    ]
    assert shown == [
        ("4711", "m", "input", 5000, D("0.005"), D("0.00")),
        ("4712", "m", "input", 15_000, D("0.015"), D("0.02")),
        ("4712", "m", "output", 7500, D("0.015"), D("0.02")),
    ]
    assert (sheet.exact, sheet.total, sheet.section("rounding")) == (D("0.035"), D("0.04"), ())
    adds_up(sheet)
    assert (sheet.credit_closing, sheet.due) == (None, sheet.total)
    assert (sheet.statement.team_name, sheet.statement.month, sheet.statement.number) == (
        "Research",
        date(YEAR, 1, 1),
        1,
    )


def test_rounding_has_a_line_of_its_own(hold: MakeHold) -> None:
    for name in ("a", "b", "c"):
        item = hold(effective_at=at(1))
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used(4000, 0, requested_model=name)])
    statements_draft(at=at(3))
    draft = statement_sheet(Statement.objects.get())
    (sheet,) = issued_all(at(3))
    for each in (draft, sheet):
        (rounding,) = each.section("rounding")
        assert (each.exact, each.total, rounding.amount) == (D("0.012"), D("0.01"), D("0.01"))
        assert [x.amount for x in each.section("charge")] == [D("0.00")] * 3
        adds_up(each)
    assert draft.lines == sheet.lines, "a draft shows what will be issued"


def test_the_months_of_a_zone_divide_the_ledger_without_a_rest(
    settings: Settings, hold: MakeHold, payer: Payer
) -> None:
    settings.INSTALLATION_ZONE = "Europe/Berlin"
    tick = timedelta(microseconds=1)
    april, november = datetime(YEAR, 3, 31, 22, tzinfo=UTC), datetime(YEAR, 10, 31, 23, tzinfo=UTC)
    for border in (april, november):
        for when in (border - tick, border):
            book(hold, when, given=7777)
            book(hold, when, payer=Payer(team_id=None))
    sheets = issued_all(datetime(YEAR + 1, 1, 10, tzinfo=UTC))
    months = sorted((s.statement.month.month, s.statement.team_name) for s in sheets)
    assert months == [(m, n) for m in (3, 4, 10, 11) for n in ("Research", "The installation itself")]
    assert all(sum(line.entries for line in sheet.lines) == 2 for sheet in sheets)
    for sheet in sheets:
        adds_up(sheet)
    assert sum(sheet.exact for sheet in sheets) == LedgerEntry.objects.aggregate(sum=Sum("price"))["sum"]
    assert StatementEntry.objects.count() == LedgerEntry.objects.count()


def test_a_price_that_is_not_known_is_shown_and_in_no_sum(hold: MakeHold, settings: Settings) -> None:
    price_set(price_key="partial", rates=(Rate(component="input", price=D(1)),), approved_by="tests")
    item = hold(effective_at=at(1), price_key="partial", output_tokens=0)
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(1_000_000, 9, requested_model="p")])
    (sheet,) = issued_all(at(3))
    unknown = [line for line in sheet.lines if line.exact is None]
    assert [(x.component, x.quantity, x.amount) for x in unknown] == [("output", 9, None)]
    assert (sheet.missing, sheet.total) == (1, D("1.00"))
    adds_up(sheet)


def test_tiers_and_new_prices_have_lines_of_their_own(hold: MakeHold) -> None:
    rates = (
        Rate(component="input", price=D(1)),
        Rate(component="input", price=D(2), min_prompt_tokens=100),
        Rate(component="output", price=D(1)),
    )
    price_set(price_key="tiered", rates=rates, approved_by="tests")
    for given in (99, 101):
        item = hold(effective_at=at(1), price_key="tiered", input_tokens=given)
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used(given, 0, price_key="tiered")])
    (sheet,) = issued_all(at(3))
    assert [(x.min_prompt_tokens, x.unit_price, x.quantity) for x in sheet.section("charge")] == [
        (0, 1, 99),
        (100, 2, 101),
    ]


def test_prepaid_credit_is_carried_from_statement_to_statement(hold: MakeHold, payer: Payer) -> None:
    """Given now, so the first month is the present one."""
    credit_grant(team_id=payer.team_id, amount=D(10), source="invoice 7", granted_by="tests")
    present = LedgerEntry.objects.get().effective_at
    book(hold, present + timedelta(seconds=1), given=2_000_000, generated=0)
    book(hold, at(1), given=1_000_000, generated=0)
    first, second = issued_all(at(3))
    assert (first.credit_opening, first.credit_moved, first.credit_used, first.credit_closing) == (
        0,
        10,
        2,
        8,
    )
    assert (second.credit_opening, second.credit_used, second.credit_closing) == (8, 1, 7)
    assert [line.component for line in first.section("credit")] == ["given: invoice 7"]
    assert (first.total, first.due) == (D("2.00"), D("0.00"))
    assert statement_json(first)["prepaid"]["closing"].startswith("8")
    adds_up(first)


def test_a_draft_carries_credit_over_from_drafts_before_it(hold: MakeHold, payer: Payer) -> None:
    credit_grant(team_id=payer.team_id, amount=D(10), source="", granted_by="tests")
    book(hold, LedgerEntry.objects.get().effective_at + timedelta(seconds=1), given=2_000_000, generated=0)
    book(hold, at(1), given=1_000_000, generated=0)
    statements_draft(at=at(3))
    before = [statement_sheet(s) for s in Statement.objects.order_by("month")]
    assert [sheet.credit_closing for sheet in before] == [8, 7]
    assert [sheet.credit_closing for sheet in issued_all(at(3))] == [8, 7]


def test_a_list_says_of_each_what_its_sheet_says_in_two_queries(
    hold: MakeHold, payer: Payer, django_assert_num_queries: Any
) -> None:
    credit_grant(team_id=payer.team_id, amount=D(10), source="", granted_by="tests")
    book(hold, LedgerEntry.objects.get().effective_at + timedelta(seconds=1), given=2_000_000, generated=0)
    for month in (1, 2, 3):
        book(hold, at(month), estimated=month == 2)
    statements_draft(at=at(3))
    statements_issue_due(at=at(2))
    rows = list(Statement.objects.order_by("-id"))
    assert {row.state for row in rows} == {"draft", "issued"}
    with django_assert_num_queries(2):
        listed = statement_sums(rows)
    sheets = [statement_json(statement_sheet(row)) for row in rows]
    for sheet in sheets:
        del sheet["lines"]
    assert [summary_json(sums) for sums in listed] == sheets
    assert any(sums.estimated for sums in listed) and any(sums.credit_moved for sums in listed)


def test_who_may_see_which(hold: MakeHold, payer: Payer) -> None:
    book(hold, at(1))
    book(hold, at(1), payer=Payer(team_id=None))
    issued_all(at(3))
    mine = Statement.objects.get(team_id=payer.team_id)
    assert statements_list(team_ids=[payer.team_id]) == [mine]
    everything = statements_list(team_ids=None)
    assert len(everything) == 2
    assert statements_list(team_ids=None, before=everything[0].id) == everything[1:]
    assert statement_get(mine.id, team_ids=None) == statement_get(mine.id, team_ids=[payer.team_id]) == mine
    with pytest.raises(NotFound):
        statement_get(mine.id, team_ids=[])


def test_a_name_is_no_formula_in_a_spreadsheet(hold: MakeHold, payer: Payer) -> None:
    Team.objects.filter(id=payer.team_id).update(name="=HYPERLINK(1)")
    book(hold, at(1))
    (sheet,) = issued_all(at(3))
    rows = list(csv.DictReader(StringIO(statement_csv(sheet))))
    assert tuple(rows[0]) == COLUMNS
    assert {row["team"] for row in rows} == {"'=HYPERLINK(1)"}

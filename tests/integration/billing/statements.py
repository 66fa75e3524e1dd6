"""Statements made for tests, and what holds for each."""

import csv
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from app.accounts.models import ApiKey, Team
from app.billing.models import LedgerEntry, Statement
from app.billing.services import reservation_hold, reservation_settle
from app.billing.statement_export import statement_csv, statement_json
from app.billing.statement_sheet import Sheet, statement_sheet
from app.billing.statement_sums import half_even
from app.billing.statements import (
    statements_draft,
    statements_issue_due,
)
from app.billing.types import Payer
from tests.factories import key_make, team_make, user_make
from tests.integration.billing.conftest import MakeHold, used

D = Decimal
YEAR = 2031
"""To come, so that the price that a test sets is in force."""


def at(month: int, day: int = 15, hour: int = 12) -> datetime:
    return datetime(YEAR, month, day, hour, tzinfo=UTC)


def research() -> Payer:
    """A team with a cost centre, and a key with another."""
    user = user_make()
    team = team_make(owner=user, name="Research")
    Team.objects.filter(id=team.id).update(cost_centre="4711")
    key = key_make(user=user, team=team).row
    ApiKey.objects.filter(id=key.id).update(cost_centre="4712")
    return Payer(team_id=team.id, account_id=user.account_id, key_id=key.id)


def book(
    hold: MakeHold,
    when: datetime,
    *,
    given: int = 1000,
    generated: int = 500,
    estimated: bool = False,
    **changes: object,
) -> UUID:
    item = hold(effective_at=when, **changes)
    reservation_hold(hold=item)
    reservation_settle(
        reservation_id=item.reservation_id,
        attempts=[used(given, generated, requested_model="m", estimated=estimated)],
    )
    return item.reservation_id


def issued_all(when: datetime) -> list[Sheet]:
    statements_draft(at=when)
    statements_issue_due(at=when)
    return [statement_sheet(s) for s in Statement.objects.order_by("number")]


def adds_up(sheet: Sheet) -> None:
    """Page, CSV, JSON and SQL say the same."""
    parts = [sheet.amount_of(name) for name in ("charge", "adjustment", "rounding")]
    assert sum(parts) == sheet.total == half_even(sheet.exact, sheet.statement.places)
    for name in ("charge", "adjustment"):
        assert sum((group.amount for group in sheet.groups(name)), D(0)) == sheet.amount_of(name)
    rows = list(csv.DictReader(StringIO(statement_csv(sheet))))
    lines = [row for row in rows if row["section"] not in {"total", "credit"}]
    (total,) = [row for row in rows if row["section"] == "total"]
    assert sum((D(row["amount"] or 0) for row in lines), D(0)) == D(total["amount"]) == sheet.total
    exact = sum((D(row["exact"] or 0) for row in lines if row["section"] != "rounding"), D(0))
    assert exact == D(total["exact"]) == sheet.exact
    data = statement_json(sheet)
    assert [D(line["amount"] or 0) for line in data["lines"] if line["section"] != "credit"] == [
        D(row["amount"] or 0) for row in lines
    ]
    assert (D(data["total"]), D(data["exact"])) == (sheet.total, sheet.exact)
    assert sheet.estimated == sum(line.estimated for line in sheet.lines)
    assert sheet.credit_moved == sum(line.exact or 0 for line in sheet.section("credit"))
    if sheet.statement.state == "issued":
        booked = LedgerEntry.objects.filter(statement_entry__statement_id=sheet.statement.id)
        assert sheet.exact == (booked.aggregate(sum=Sum("price"))["sum"] or 0)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT coalesce(sum(l.amount), 0) FROM billing_ledgerline l JOIN billing_statemententry x"
                " ON x.entry_id = l.entry_id WHERE l.side = 'price' AND x.statement_id = %s",
                [sheet.statement.id],
            )
            assert cursor.fetchone()[0] == sheet.exact

"""When statements are drafted and issued, in which order, and that an issued one stays as it is."""

import threading
from datetime import date, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Sum

from app.billing.models import LedgerEntry, Statement, StatementEntry, StatementLine
from app.billing.services import reservation_hold, reservation_settle
from app.billing.statement_sheet import statement_sheet
from app.billing.statement_sums import statement_sums
from app.billing.statements import (
    StatementNotDue,
    statement_issue,
    statements_draft,
    statements_issue_due,
)
from app.billing.tasks import statements_issue as issue_task
from app.billing.types import Payer
from tests.factories import team_make, user_make
from tests.integration.billing.conftest import MakeHold, used
from tests.integration.billing.statements import YEAR, D, adds_up, at, book, issued_all, research
from tests.integration.billing.test_guards import execute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("roomy", "db")]


@pytest.fixture
def payer() -> Payer:
    return research()


def test_three_days_of_grace(hold: MakeHold) -> None:
    book(hold, at(1))
    assert statements_draft(at=at(1, 31, 23)) == 0
    midnight = at(2, 1, 0)
    assert (statements_draft(at=midnight), statements_draft(at=midnight)) == (1, 0)
    draft = Statement.objects.get()
    sheet = statement_sheet(draft)
    assert (sheet.statement.state, sheet.statement.number, sheet.due_at) == ("draft", None, at(2, 4, 0))
    assert statements_issue_due(at=at(2, 4, 0) - timedelta(microseconds=1)) == []
    book(hold, at(1, 31, 23))
    assert [one.number for one in statements_issue_due(at=at(2, 4, 0))] == [1]
    issued = statement_sheet(Statement.objects.get())
    assert sum(line.entries for line in issued.section("charge")) == 4, "what came within the grace is in it"
    assert statements_issue_due(at=at(2, 4, 0)) == []
    assert statement_issue(statement=draft, by="again", at=at(3)) is None


def test_late_truth_stands_in_the_next(hold: MakeHold) -> None:
    first = hold(effective_at=at(1))
    reservation_hold(hold=first)
    reservation_settle(
        reservation_id=first.reservation_id,
        attempts=[used(estimated=True, requested_model="m")],
        by_sweeper=True,
    )
    statements_draft(at=at(2, 10))
    (drafted,) = statement_sums(list(Statement.objects.all()))
    (january,) = issued_all(at(2, 10))
    assert january.estimated == january.exact == D("0.002")
    (listed,) = statement_sums(list(Statement.objects.all()))
    for row in (drafted, listed):
        assert (row.exact, row.total, row.estimated) == (january.exact, january.total, january.estimated)
    reservation_settle(reservation_id=first.reservation_id, attempts=[used(20_000, 500, requested_model="m")])
    assert statements_draft(at=at(2, 11)) == 0, "February is not over"
    book(hold, at(2))
    again, february = issued_all(at(3, 10))
    assert again == january
    adjustments = february.section("adjustment")
    assert {line.month for line in adjustments} == {date(YEAR, 1, 1)}
    assert sum(line.exact for line in adjustments) == D("0.021") - D("0.002")
    adds_up(february)
    assert january.exact + february.exact == LedgerEntry.objects.aggregate(sum=Sum("price"))["sum"]


def test_late_truth_of_a_team_that_is_quiet_now_gets_a_statement(hold: MakeHold) -> None:
    book(hold, at(1))
    issued_all(at(2, 10))
    book(hold, at(1, 30))
    assert len(issued_all(at(2, 20))) == 1
    *_, february = issued_all(at(3, 10))
    assert {line.section for line in february.lines} - {"rounding"} == {"adjustment"}
    assert february.statement.month == date(YEAR, 2, 1)


def test_months_of_a_team_follow_each_other(hold: MakeHold) -> None:
    book(hold, at(1))
    book(hold, at(2))
    statements_draft(at=at(3))
    january, february = Statement.objects.order_by("month")
    with pytest.raises(StatementNotDue, match="Issue January 2031 first"):
        statement_issue(statement=february, by="me", at=at(3))
    with pytest.raises(StatementNotDue, match="February 2031 is not over yet"):
        statement_issue(statement=february, by="me", at=at(2))
    with pytest.raises(DatabaseError, match="earlier month of this team"):
        execute(f"SELECT billing_statement_issue('{february.id}', 'x')")
    assert statement_sheet(february).exact == D("0.002"), "January's entries wait for January"
    assert statement_issue(statement=january, by="me", at=at(3)).number == 1
    assert statement_issue(statement=february, by="me", at=at(3)).number == 2


EDITS = [
    "UPDATE billing_statement SET team_name = 'x'",
    "UPDATE billing_statement SET state = 'draft', number = NULL, issued_at = NULL",
    "DELETE FROM billing_statement",
    "UPDATE billing_statementline SET amount = 0",
    "DELETE FROM billing_statementline",
    "INSERT INTO billing_statemententry (entry_id, statement_id) SELECT id, id FROM billing_statement",
    "UPDATE billing_statemententry SET statement_id = statement_id",
    "DELETE FROM billing_statemententry",
    "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL tessera.truncate = 'refuse'; TRUNCATE billing_statementline",
]


@pytest.mark.parametrize("edit", EDITS)
def test_an_issued_statement_is_never_edited(hold: MakeHold, edit: str) -> None:
    book(hold, at(1))
    issued_all(at(3))
    with (
        pytest.raises(DatabaseError, match="never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(edit)


def test_numbers_follow_each_other(hold: MakeHold) -> None:
    book(hold, at(1))
    statements_draft(at=at(3))
    with pytest.raises(DatabaseError, match="numbered one after the other"), transaction.atomic():
        Statement.objects.update(state="issued", number=7, issued_at=at(3), total=0)


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gaps_whoever_issues_at_once(hold: MakeHold) -> None:
    for _ in range(6):
        team = team_make(owner=user_make())
        book(hold, at(1), payer=Payer(team_id=team.id))
    statements_draft(at=at(3))
    first = Statement.objects.order_by("id")[0]
    with transaction.atomic():
        statement_issue(statement=first, by="rolled back", at=at(3))
        transaction.set_rollback(True)

    def run() -> None:
        try:
            statements_issue_due(at=at(3))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Statement.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert StatementEntry.objects.count() == LedgerEntry.objects.count() == 6


def test_the_schedule_and_the_command(hold: MakeHold, payer: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
    book(hold, at(1))
    assert issue_task() == 0, "no month is over yet"
    out = StringIO()
    call_command("statement_issue", stdout=out)
    assert "Nothing was due." in out.getvalue()
    with pytest.raises(CommandError, match="looks like 2026-11"):
        call_command("statement_issue", month="January")
    statements_draft(at=at(2, 2))
    with pytest.raises(CommandError, match="is not over yet"):
        call_command("statement_issue", month=f"{YEAR}-01", team=str(payer.team_id))
    monkeypatch.setattr("app.billing.statements.now", lambda: at(2, 2))
    out = StringIO()
    call_command("statement_issue", month=f"{YEAR}-01", team=str(payer.team_id), stdout=out)
    assert StatementEntry.objects.get().statement == Statement.objects.get()
    assert "Issued No. 000001: Research 2031-01" in out.getvalue()
    call_command("statement_issue", month=f"{YEAR}-01", stdout=out)
    assert str(StatementLine.objects.first()) == "charge m input"

"""Drafting and issuing statements. Each use is one SQL function (see `sql/statements.sql`)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection

from app.billing.models import Statement
from app.common.clock import now
from app.common.errors import Conflict

GRACE = timedelta(days=3)
"""Between the end of a month and its statement: what comes late by a little still stands in its own month."""

_PLACES = {"BHD": 3, "JOD": 3, "KWD": 3, "OMR": 3, "TND": 3, "CLP": 0, "ISK": 0, "JPY": 0, "KRW": 0, "VND": 0}


class StatementNotDue(Conflict):
    """This statement cannot be issued yet."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A statement that has just been issued."""

    statement_id: UUID
    number: int


def places_of(currency: str) -> int:
    """How many decimals a bill in this currency has."""
    return _PLACES.get(currency, 2)


def statements_draft(*, at: datetime | None = None) -> int:
    """Draft the statements of the months that are over. Safe to repeat; returns how many are new."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT billing_statements_draft(%s, %s, %s, %s)",
            [settings.INSTALLATION_ZONE, settings.CURRENCY, places_of(settings.CURRENCY), at or now()],
        )
        count: int = cursor.fetchone()[0]
    return count


def statement_issue(*, statement: Statement, by: str, at: datetime | None = None) -> Issued | None:
    """Issue one draft, also within its grace; None when it has been issued meanwhile.

    Errors: StatementNotDue (its month is not over, or an earlier month of the team is still a draft).
    """
    if statement.ends_at > (at or now()):
        raise StatementNotDue(f"{statement.month:%B %Y} is not over yet.")
    earlier = Statement.objects.filter(team_id=statement.team_id, state="draft", month__lt=statement.month)
    if first := earlier.order_by("month").first():
        raise StatementNotDue(f"Issue {first.month:%B %Y} first: statements of a team follow each other.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_statement_issue(%s, %s)", [statement.id, by])
        number = cursor.fetchone()[0]
    return None if number is None else Issued(statement.id, number)


def statements_issue_due(*, at: datetime | None = None, by: str = "schedule") -> list[Issued]:
    """Issue every draft whose grace is over, the oldest months first."""
    moment = at or now()
    due = Statement.objects.filter(state="draft", ends_at__lte=moment - GRACE).order_by("month", "id")
    issued = (statement_issue(statement=statement, by=by, at=moment) for statement in due)
    return [one for one in issued if one is not None]

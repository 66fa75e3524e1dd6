"""Statements as lists show them: whose they are, and their sums without their lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from uuid import UUID

from django.db import connection
from django.db.models import Q, Sum

from app.billing.models import Statement, StatementLine
from app.billing.statements import GRACE
from app.common.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What a statement adds up to, in its currency; a draft's as of now."""

    statement: Statement
    exact: Decimal
    total: Decimal
    """`exact`, rounded once."""
    estimated: Decimal
    """The part of `exact` that rests on estimates."""
    missing: int
    """Entries without a known price, which are in no sum."""
    credit_opening: Decimal | None
    """None: the team was never given prepaid credit."""
    credit_moved: Decimal
    """Given, corrected and lapsed in this statement, exact."""
    credit_used: Decimal

    @property
    def due_at(self) -> datetime:
        """When a draft is issued."""
        return self.statement.ends_at + GRACE

    @property
    def credit_spent(self) -> Decimal:
        """`credit_used` as a movement."""
        return -self.credit_used

    @property
    def credit_closing(self) -> Decimal | None:
        """Left for the next statement, exact."""
        if self.credit_opening is None:
            return None
        return self.credit_opening + self.credit_moved - self.credit_used

    @property
    def due(self) -> Decimal:
        """What prepaid credit has not paid, rounded."""
        return self.total - half_even(self.credit_used, self.statement.places)


def half_even(amount: Decimal, places: int) -> Decimal:
    """Rounded as every line is."""
    return amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def statements_list(
    *, team_ids: Sequence[UUID] | None, before: UUID | None = None, limit: int = 200
) -> list[Statement]:
    """Statements of these teams (None: of all, the installation's own included), newest first."""
    rows = Statement.objects.all() if team_ids is None else Statement.objects.filter(team_id__in=team_ids)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return list(rows.order_by("-id")[:limit])


def statement_get(statement_id: UUID, *, team_ids: Sequence[UUID] | None) -> Statement:
    """Errors: NotFound, also for one of another team."""
    rows = Statement.objects.filter(id=statement_id)
    if team_ids is not None:
        rows = rows.filter(team_id__in=team_ids)
    found = rows.first()
    if found is None:
        raise NotFound("There is no such statement, or it is not yours to see.")
    return found


def statement_sums(statements: Sequence[Statement]) -> list[Sums]:
    """The sums of statements in their order, in two queries whatever their number."""
    found = _issued([row for row in statements if row.state == "issued"])
    found |= _drafted([row for row in statements if row.state != "issued"])
    return [found[row.id] for row in statements]


def _issued(statements: Sequence[Statement]) -> dict[UUID, Sums]:
    of_lines = {
        statement: (estimated, moved)
        for statement, estimated, moved in StatementLine.objects.filter(statement__in=statements)
        .values_list("statement")
        .annotate(guessed=Sum("estimated"), moved=Sum("exact", filter=Q(section="credit")))
    }
    sums = {}
    for row in statements:
        estimated, moved = of_lines.get(row.id, (None, None))
        sums[row.id] = Sums(
            statement=row,
            exact=row.exact or Decimal(0),
            total=row.total or Decimal(0),
            estimated=estimated or Decimal(0),
            missing=row.missing or 0,
            credit_opening=row.credit_opening,
            credit_moved=moved or Decimal(0),
            credit_used=row.credit_used or Decimal(0),
        )
    return sums


# Most teams were never given credit: only for the others is it worked out what was left of it.
_DRAFTED = """
SELECT s.id, e.exact, e.estimated, e.missing, z.credit_opening, coalesce(z.credit_moved, 0), coalesce(z.credit_used, 0)
FROM billing_statement s
CROSS JOIN LATERAL (
  SELECT coalesce(sum(price), 0) AS exact, coalesce(sum(price) FILTER (WHERE estimated), 0) AS estimated,
    count(*) FILTER (WHERE price_missing) AS missing
  FROM billing_statement_entries(s)
) e
LEFT JOIN LATERAL (
  SELECT b.* FROM billing_statement_sums(s) b
  WHERE EXISTS (SELECT 1 FROM billing_ledgerentry c WHERE c.team_id = s.team_id AND c.credit IS NOT NULL)
) z ON true
WHERE s.id = ANY(%s)
"""


def _drafted(statements: Sequence[Statement]) -> dict[UUID, Sums]:
    rows = {row.id: row for row in statements}
    sums = {}
    with connection.cursor() as cursor:
        cursor.execute(_DRAFTED, [list(rows)])
        for statement_id, exact, estimated, missing, opening, moved, used in cursor.fetchall():
            row = rows[statement_id]
            sums[row.id] = Sums(
                statement=row,
                exact=exact,
                total=half_even(exact, row.places),
                estimated=estimated,
                missing=missing,
                credit_opening=opening,
                credit_moved=moved,
                credit_used=used,
            )
    return sums

"""A statement as people and programs read it: stored lines of an issued one, computed lines of a draft."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from app.billing.models import Statement, StatementLine
from app.billing.statements import GRACE
from app.common.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetLine:
    """One line; see `StatementLine`."""

    section: str
    month: date | None
    cost_centre: str
    model: str
    component: str
    price_version: UUID | None
    quantity: int | None
    unit_price: Decimal | None
    per_units: int | None
    min_prompt_tokens: int | None
    exact: Decimal | None
    estimated: Decimal
    amount: Decimal | None
    """Rounded once, half to even; None: no price is known."""
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The lines of one cost centre within a section."""

    cost_centre: str
    lines: tuple[SheetLine, ...]
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A whole statement. Charges, adjustments and rounding add up to `total`, to the digit."""

    id: UUID
    number: int | None
    state: str
    team_id: UUID | None
    team_name: str
    month: date
    zone: str
    starts_at: datetime
    ends_at: datetime
    due_at: datetime
    """When a draft is issued."""
    issued_at: datetime | None
    currency: str
    places: int
    lines: tuple[SheetLine, ...]
    exact: Decimal
    total: Decimal
    missing: int
    """Entries without a known price, which are in no sum."""
    credit_opening: Decimal | None
    """None: the team was never given prepaid credit."""
    credit_used: Decimal

    def section(self, name: str) -> tuple[SheetLine, ...]:
        """The lines of one section, in their order."""
        return tuple(line for line in self.lines if line.section == name)

    def groups(self, name: str) -> tuple[Group, ...]:
        """The lines of a section by cost centre."""
        found = groupby(self.section(name), key=lambda line: line.cost_centre)
        return tuple(
            Group(cost_centre=centre, lines=rows, amount=_sum(row.amount for row in rows))
            for centre, rows in ((centre, tuple(rows)) for centre, rows in found)
        )

    def amount_of(self, name: str) -> Decimal:
        """The rounded lines of a section added up."""
        return _sum(line.amount for line in self.section(name))

    @property
    def estimated(self) -> Decimal:
        """The part of `exact` that rests on estimates."""
        return _sum(line.estimated for line in self.lines)

    @property
    def credit_moved(self) -> Decimal:
        """Given, corrected and lapsed in this statement, exact."""
        return _sum(line.exact for line in self.section("credit"))

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
        return self.total - half_even(self.credit_used, self.places)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSum:
    """A statement in a list: its sums, without its lines."""

    statement: Statement
    exact: Decimal
    total: Decimal
    estimated: Decimal

    @property
    def due_at(self) -> datetime:
        """When a draft is issued."""
        return self.statement.ends_at + GRACE


_SUMS = """
SELECT s.id, coalesce(sum(e.price), 0), coalesce(sum(e.price) FILTER (WHERE e.estimated), 0)
FROM billing_statement s CROSS JOIN LATERAL billing_statement_entries(s) e WHERE s.id = ANY(%s) GROUP BY s.id
"""


def statement_sums(statements: Sequence[Statement]) -> list[StatementSum]:
    """The sums of statements, in two queries whatever their number; a draft's as of now."""
    issued = [row.id for row in statements if row.state == "issued"]
    stored = StatementLine.objects.filter(statement__in=issued).values_list("statement")
    estimated = dict(stored.annotate(Sum("estimated")))
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, [[row.id for row in statements if row.state != "issued"]])
        drafts = {one: (exact, guessed) for one, exact, guessed in cursor.fetchall()}
    sums = []
    for row in statements:
        exact, guessed = drafts.get(row.id, (row.exact or Decimal(0), estimated.get(row.id) or Decimal(0)))
        total = half_even(exact, row.places) if row.total is None else row.total
        sums.append(StatementSum(statement=row, exact=exact, total=total, estimated=guessed))
    return sums


def statement_get(statement_id: UUID, *, team_ids: Sequence[UUID] | None) -> Statement:
    """Errors: NotFound, also for one of another team."""
    rows = Statement.objects.filter(id=statement_id)
    if team_ids is not None:
        rows = rows.filter(team_id__in=team_ids)
    found = rows.first()
    if found is None:
        raise NotFound("There is no such statement, or it is not yours to see.")
    return found


def statement_sheet(statement: Statement) -> Sheet:
    """The whole statement; a draft as it would be issued now."""
    if statement.state == "issued":
        lines = tuple(_stored(line) for line in statement.lines.order_by("position"))
        sums: dict[str, Any] = {
            "exact": statement.exact or Decimal(0),
            "total": statement.total or Decimal(0),
            "missing": statement.missing or 0,
            "credit_opening": statement.credit_opening,
            "credit_used": statement.credit_used or Decimal(0),
        }
    else:
        lines, sums = _computed(statement)
    return Sheet(
        id=statement.id,
        number=statement.number,
        state=statement.state,
        team_id=statement.team_id,
        team_name=statement.team_name,
        month=statement.month,
        zone=statement.zone,
        starts_at=statement.starts_at,
        ends_at=statement.ends_at,
        due_at=statement.ends_at + GRACE,
        issued_at=statement.issued_at,
        currency=statement.currency,
        places=statement.places,
        lines=lines,
        **sums,
    )


def _stored(line: StatementLine) -> SheetLine:
    return SheetLine(
        section=line.section,
        month=line.month,
        cost_centre=line.cost_centre,
        model=line.model,
        component=line.component,
        price_version=line.price_version_id,
        quantity=line.quantity,
        unit_price=line.unit_price,
        per_units=line.per_units,
        min_prompt_tokens=line.min_prompt_tokens,
        exact=line.exact,
        estimated=line.estimated or Decimal(0),
        amount=None if line.amount is None else round(line.amount, line.statement.places),
        entries=line.entries,
    )


def _computed(statement: Statement) -> tuple[tuple[SheetLine, ...], dict[str, Any]]:
    query = "SELECT l.* FROM billing_statement s CROSS JOIN LATERAL {}(s) l WHERE s.id = %s"
    with connection.cursor() as cursor:
        cursor.execute(query.format("billing_statement_lines"), [statement.id])
        lines = [_line(row, statement.places) for row in cursor.fetchall()]
        cursor.execute(query.format("billing_statement_sums"), [statement.id])
        exact, missing, opening, _moved, used = cursor.fetchone()
    total = half_even(exact, statement.places)
    rest = total - _sum(line.amount for line in lines if line.section != "credit")
    if rest:
        lines.append(_rounding(rest))
    sums = {
        "exact": exact, "total": total, "missing": missing, "credit_opening": opening, "credit_used": used,
    }  # fmt: skip
    return tuple(lines), sums


def _line(row: Sequence[Any], places: int) -> SheetLine:
    exact: Decimal | None = row[10]
    return SheetLine(
        section=row[0],
        month=row[1],
        cost_centre=row[2],
        model=row[3],
        component=row[4],
        price_version=row[5],
        quantity=row[6],
        unit_price=row[7],
        per_units=row[8],
        min_prompt_tokens=row[9],
        exact=exact,
        estimated=row[11] or Decimal(0),
        amount=None if exact is None else half_even(exact, places),
        entries=row[12],
    )


def _rounding(rest: Decimal) -> SheetLine:
    return SheetLine(
        section="rounding", month=None, cost_centre="", model="", component="", price_version=None, quantity=None,
        unit_price=None, per_units=None, min_prompt_tokens=None, exact=rest, estimated=Decimal(0), amount=rest,
        entries=0,
    )  # fmt: skip


def _sum(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), Decimal(0))

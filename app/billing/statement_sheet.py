"""A statement as people and programs read it: stored lines of an issued one, computed lines of a draft."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection

from app.billing.models import Statement, StatementLine
from app.billing.statement_sums import Sums, half_even, statement_sums


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
class Sheet(Sums):
    """A whole statement. Charges, adjustments and rounding add up to `total`, to the digit."""

    lines: tuple[SheetLine, ...]

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


def statement_sheet(statement: Statement) -> Sheet:
    """The whole statement; a draft as it would be issued now."""
    (sums,) = statement_sums([statement])
    if statement.state == "issued":
        lines = [_stored(line, statement.places) for line in statement.lines.order_by("position")]
    else:
        lines = _computed(statement)
        rest = sums.total - _sum(line.amount for line in lines if line.section != "credit")
        if rest:
            lines.append(_rounding(rest))
    return Sheet(**{field.name: getattr(sums, field.name) for field in fields(Sums)}, lines=tuple(lines))


def _stored(line: StatementLine, places: int) -> SheetLine:
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
        amount=None if line.amount is None else round(line.amount, places),
        entries=line.entries,
    )


def _computed(statement: Statement) -> list[SheetLine]:
    query = (
        "SELECT l.* FROM billing_statement s CROSS JOIN LATERAL billing_statement_lines(s) l WHERE s.id = %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [statement.id])
        return [_line(row, statement.places) for row in cursor.fetchall()]


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

"""The table of the spend page, as it is shown and as it is a CSV."""

from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from app.billing.types.spending import SpendSum
from app.common.formatting import count, decimals_for, money, share
from app.dashboard.filters import GROUP_NAMES, TIMES, SpendFilter
from app.dashboard.selectors import TableRow, narrowed
from app.dashboard.tables import Cell, Table, table_of

COLUMNS = (
    "Price",
    "Share",
    "Estimated",
    "Cost",
    "Margin",
    "Turns",
    "Calls",
    "Input tokens",
    "Cached",
    "Output tokens",
    "Reasoning",
)


A_PAGE = 100
"""Lines that a page shows; a file has all."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Which lines of a longer table are shown."""

    first: int
    last: int
    count: int
    number: int
    """From 1."""

    @property
    def earlier(self) -> int:
        """The page before; 0: there is none."""
        return self.number - 1

    @property
    def later(self) -> int:
        """The page after; 0: there is none."""
        return self.number + 1 if self.last < self.count else 0


def pages(count: int, wanted: str) -> Pages:
    """The page with that number; where there is none, the nearest."""
    most = max(1, -(-count // A_PAGE))
    number = min(most, max(1, int(wanted))) if wanted.isdecimal() and len(wanted) < 10 else 1
    return Pages((number - 1) * A_PAGE + 1, min(count, number * A_PAGE), count, number)


def spend_table(
    chosen: SpendFilter,
    rows: list[TableRow],
    currency: str,
    *,
    total: SpendSum,
    shown: Pages | None = None,
) -> Table:
    """One line per group, and `total`, the sum of all; the name narrows the page, figures lead to the entries.

    A file, which shows no part, has all lines and no links.
    """
    listed = reverse("dashboard:entries")
    places = decimals_for(total.price)
    lines = []
    for row in rows[shown.first - 1 : shown.last] if shown else rows:
        inner = narrowed(chosen, row) if shown else None
        deeper = f"?{inner.query(group_by=_next(chosen))}" if inner else ""
        entries = f"{listed}?{inner.query()}" if inner else ""
        lines.append([_name(row, deeper), *_figures(row.sums, total.price, currency, places, entries)])
    every = f"{listed}?{chosen.query()}"
    foot = [Cell("All"), *_figures(total, total.price, currency, places, every)]
    return table_of((GROUP_NAMES[chosen.group_by].capitalize(), *COLUMNS), lines, foot)


def _next(chosen: SpendFilter) -> str:
    """What one wants to know next of a row."""
    return (
        "model"
        if chosen.group_by in {*TIMES, "person", "key", "kind"}
        else "day"
        if chosen.group_by == "model"
        else "person"
    )


def _name(row: TableRow, href: str) -> Cell:
    missing = row.sums.unpriced
    note = f"{count(missing)} calls without a price" if missing else ""
    return Cell(row.name.text, href=href, muted=not row.name.known, note=note)


def _figures(sums: SpendSum, whole: Decimal, currency: str, places: int, entries: str) -> list[Cell]:
    known_cost = sums.uncosted < sums.entries
    least = "≤ " if sums.uncosted else ""
    marked = f"{entries}&flag=estimated" if entries else ""
    return [
        Cell(money(sums.price, currency, places), f"{sums.price:f}", entries),
        Cell(share(sums.price, whole)),
        Cell(f"≈ {share(sums.estimated_price, sums.price)}", f"{sums.estimated_price:f}", marked)
        if sums.estimated_price
        else Cell("none", "0", muted=True),
        *(
            (
                Cell(money(sums.cost, currency, places), f"{sums.cost:f}", entries),
                Cell(least + money(sums.margin, currency, places), f"{sums.margin:f}", entries),
            )
            if known_cost
            else (Cell("unknown", muted=True), Cell("unknown", muted=True))
        ),
        *(
            Cell(count(n), str(n), entries)
            for n in (
                sums.requests,
                sums.entries,
                sums.input_tokens,
                sums.cached_tokens,
                sums.output_tokens,
                sums.reasoning_tokens,
            )
        ),
    ]

"""The table of the spend page, as it is shown and as it is a CSV."""

from decimal import Decimal

from django.urls import reverse

from app.billing.types.spending import SpendSum
from app.common.formatting import count, decimals_for, money, share
from app.dashboard.filters import GROUP_NAMES, TIMES, SpendFilter
from app.dashboard.selectors import TableRow, narrowed, total_of
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


def spend_table(chosen: SpendFilter, rows: list[TableRow], currency: str) -> Table:
    """One line a group, and their sum; the name narrows the page, the price leads to the entries."""
    total = total_of(rows)
    places = decimals_for(total.price)
    lines = []
    for row in rows:
        inner = narrowed(chosen, row)
        deeper = f"?{inner.query(group_by=_next(chosen))}" if inner else ""
        entries = f"{reverse('dashboard:entries')}?{inner.query()}" if inner else ""
        lines.append([_name(row, deeper), *_figures(row.sums, total.price, currency, places, entries)])
    every = f"{reverse('dashboard:entries')}?{chosen.query()}"
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
    return [
        Cell(money(sums.price, currency, places), f"{sums.price:f}", entries),
        Cell(share(sums.price, whole)),
        Cell(f"≈ {share(sums.estimated_price, sums.price)}", f"{sums.estimated_price:f}")
        if sums.estimated_price
        else Cell("none", "0", muted=True),
        Cell(money(sums.cost, currency, places), f"{sums.cost:f}")
        if known_cost
        else Cell("unknown", muted=True),
        Cell(least + money(sums.margin, currency, places), f"{sums.margin:f}")
        if known_cost
        else Cell("unknown", muted=True),
        *(
            Cell(count(n), str(n))
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

"""Amounts in the dashboard's templates."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import escape

from django import template
from django.utils.safestring import SafeString

from app.accounts.models import User
from app.accounts.selectors import managed_teams
from app.billing.statement_sheet import Sheet
from app.common import formatting
from app.dashboard.chart import Bar, Chart
from app.dashboard.tables import Cell

register = template.Library()


@register.simple_tag
def sees_spend(user: User) -> bool:
    """Whether the page of spend has anything for this person."""
    teams = managed_teams(user)
    return teams is None or bool(teams)


@register.simple_tag
def money(amount: Decimal | None, currency: str, decimals: int) -> str:
    """An amount in a column, with the column's decimals."""
    return formatting.money(amount, currency, decimals)


@register.simple_tag
def plain_number(amount: Decimal | str | None) -> str:
    """For a field that is filled in: without noughts that say nothing; empty when unknown."""
    return f"{amount.normalize():f}" if isinstance(amount, Decimal) else ""


@register.simple_tag
def figure(amount: Decimal | None, currency: str) -> str:
    """An amount on its own."""
    return formatting.figure(amount, currency)


@register.simple_tag
def exact(amount: Decimal | None, currency: str) -> str:
    """Every digit, for a hover."""
    return "unknown" if amount is None else f"{amount:f} {currency}"


@register.simple_tag
def share(part: Decimal, whole: Decimal) -> str:
    """A part in percent."""
    return formatting.share(part, whole)


@register.filter
def item(values: Mapping[str, str], name: str) -> str:
    """What was typed into a field."""
    return values.get(name, "")


@register.filter
def thin(number: int) -> str:
    """A count with thin separators."""
    return formatting.count(number)


@register.simple_tag
def line_sum(sheet: Sheet, section: str) -> str:
    """The rounded lines of a section of a statement, added up."""
    return formatting.money(sheet.amount_of(section), sheet.statement.currency, sheet.statement.places)


@register.filter
def lines(rows: Sequence[Sequence[Cell]]) -> SafeString:
    """The lines of a table: a template's own loop takes ten times as long over a thousand cells."""
    return SafeString("\n      ".join(map(line, rows)))


@register.filter
def line(row: Sequence[Cell]) -> SafeString:
    """One line; its first cell names it. Of links to one place the first alone is a stop for the keyboard.

    Every text is escaped here, one by one: `format_html` for each of a thousand cells takes longer than all else.
    """
    name, *others = row
    seen: set[str] = set()
    cells = [f'<tr><th scope="row"{_attributes(name)}>{_content(name, "missing")}</th>']
    for cell in others:
        cells.append(f"<td{_attributes(cell)}>{_content(cell, 'note', again=cell.href in seen)}</td>")
        seen.add(cell.href)
    return SafeString("".join(cells) + "</tr>")


def _attributes(cell: Cell) -> str:
    kinds = [
        kind for kind, is_so in (("muted", cell.muted), ("text", cell.name), ("words", cell.words)) if is_so
    ]
    title = f' title="{escape(cell.exact)}"' if cell.exact else ""
    return f' class="{" ".join(kinds)}"{title}' if kinds else title


def _content(cell: Cell, note: str, *, again: bool = False) -> str:
    shown = escape(cell.text)
    if cell.href:
        stop = ' tabindex="-1"' if again else ""
        shown = f'<a href="{escape(cell.href)}"{stop}>{shown}</a>'
    return f'{shown} <span class="{note}">{escape(cell.note)}</span>' if cell.note else shown


@register.simple_tag
def bars(shown: Chart, currency: str, decimals: int) -> SafeString:
    """The bars of a chart, each with its figures to hover; as with `lines`, there may be hundreds."""
    return SafeString("\n      ".join(_bar(bar, currency, decimals) for bar in shown.bars))


def _bar(bar: Bar, currency: str, decimals: int) -> str:
    said = [f"{bar.name}: {formatting.money(bar.total.price, currency, decimals)}"]
    for name, amount in bar.parts:
        estimated = f" (≈ {formatting.share(amount.estimated, amount.price)})" if amount.estimated else ""
        said.append(f"{name} {formatting.money(amount.price, currency, decimals)}{estimated}")
    rects = []
    for part in bar.segments:
        rects.append(_rect(f"s{part.colour}", part.x, part.y, part.height))
        if part.hatch_height != "0.00":
            rects.append(_rect("hatch", part.x, part.y, part.hatch_height))
    slot = f'<rect class="slot" x="{bar.slot_x}" y="0" width="100" height="1000"/>'
    title = escape("\n".join(said))
    return f'<g class="column"><title>{title}</title>{slot}{"".join(rects)}</g>'


def _rect(kind: str, x: int, y: str, height: str) -> str:
    """Of our own figures alone."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="72" height="{height}"/>'


@register.filter
def axis(shown: Chart) -> SafeString:
    """What stands below the bars; a slot without a label keeps its place."""
    return SafeString("".join(f"<li><span>{escape(bar.label)}</span></li>" for bar in shown.bars))


_COMPONENTS = {
    "input": "Input",
    "cache_read": "Cached input",
    "cache_write": "Cache writes",
    "cache_write_mid": "Cache writes (mid)",
    "cache_write_long": "Cache writes (long)",
    "cache_write_xlong": "Cache writes (longest)",
    "input_audio": "Audio input",
    "input_image": "Image input",
    "output": "Output",
    "reasoning": "Reasoning",
    "output_audio": "Audio output",
    "rejected_prediction": "Rejected prediction",
    "request": "Requests",
    "refund": "Refund",
    "write_off": "Write-off",
}
_PER = {1_000_000: "per million", 1_000: "per thousand", 1: "each"}


@register.filter
def component(name: str) -> str:
    """What a line of a statement is about, in words."""
    return _COMPONENTS.get(name, name.replace("_", " "))


@register.simple_tag
def unit_price(price: Decimal | None, per_units: int | None, currency: str) -> str:
    """`€0.15 per million`, with every digit that matters."""
    if price is None or per_units is None:
        return "unknown"
    decimals = max(2, -int(price.normalize().as_tuple().exponent))
    return f"{formatting.money(price, currency, decimals)} {_PER[per_units]}"

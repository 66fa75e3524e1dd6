"""Amounts in the dashboard's templates."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from django import template
from django.utils.html import format_html, format_html_join
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
    return format_html_join("\n      ", "{}", ((line(row),) for row in rows))


@register.filter
def line(row: Sequence[Cell]) -> SafeString:
    """One line; its first cell names it. Of links to one place the first alone is a stop for the keyboard."""
    name, *others = row
    head = format_html('<th scope="row"{}{}>{}</th>', *_attributes(name), _content(name, "missing"))
    seen: set[str] = set()
    cells = []
    for cell in others:
        shown = _content(cell, "note", again=cell.href in seen)
        cells.append((format_html("<td{}{}>{}</td>", *_attributes(cell), shown),))
        seen.add(cell.href)
    return format_html("<tr>{}{}</tr>", head, format_html_join("", "{}", cells))


def _attributes(cell: Cell) -> tuple[str, str]:
    kinds = [
        kind for kind, is_so in (("muted", cell.muted), ("text", cell.name), ("words", cell.words)) if is_so
    ]
    return (
        format_html(' class="{}"', " ".join(kinds)) if kinds else "",
        format_html(' title="{}"', cell.exact) if cell.exact else "",
    )


def _content(cell: Cell, note: str, *, again: bool = False) -> str:
    shown = cell.text
    if cell.href:
        stop = SafeString(' tabindex="-1"') if again else ""
        shown = format_html('<a href="{}"{}>{}</a>', cell.href, stop, cell.text)
    return format_html('{} <span class="{}">{}</span>', shown, note, cell.note) if cell.note else shown


@register.simple_tag
def bars(shown: Chart, currency: str, decimals: int) -> SafeString:
    """The bars of a chart, each with its figures to hover; as with `lines`, there may be hundreds."""
    return format_html_join("\n      ", "{}", ((_bar(bar, currency, decimals),) for bar in shown.bars))


def _bar(bar: Bar, currency: str, decimals: int) -> SafeString:
    said = [f"{bar.name}: {formatting.money(bar.total.price, currency, decimals)}"]
    for name, amount in bar.parts:
        estimated = f" (≈ {formatting.share(amount.estimated, amount.price)})" if amount.estimated else ""
        said.append(f"{name} {formatting.money(amount.price, currency, decimals)}{estimated}")
    rects: list[tuple[str, int, str, str]] = []
    for part in bar.segments:
        rects.append((f"s{part.colour}", part.x, part.y, part.height))
        if part.hatch_height != "0.00":
            rects.append(("hatch", part.x, part.y, part.hatch_height))
    return format_html(
        '<g class="column"><title>{}</title><rect class="slot" x="{}" y="0" width="100" height="1000"/>{}</g>',
        "\n".join(said),
        bar.slot_x,
        format_html_join("", '<rect class="{}" x="{}" y="{}" width="72" height="{}"/>', rects),
    )


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

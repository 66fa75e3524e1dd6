"""Amounts in the dashboard's templates."""

from collections.abc import Mapping
from decimal import Decimal

from django import template

from app.accounts.models import User
from app.accounts.selectors import managed_teams
from app.billing.statement_sheet import Sheet
from app.common import formatting

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
    return formatting.money(sheet.amount_of(section), sheet.currency, sheet.places)


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

"""Amounts in the dashboard's templates."""

from decimal import Decimal

from django import template

from app.common import formatting

register = template.Library()


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
def thin(number: int) -> str:
    """A count with thin separators."""
    return formatting.count(number)

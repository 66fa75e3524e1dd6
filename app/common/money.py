"""Money as the API shows it: exact decimals in strings, never floats."""

from decimal import Decimal
from typing import TypedDict


class Money(TypedDict):
    """`{"amount": "0.00123400", "currency": "EUR"}`"""

    amount: str
    currency: str


def money(amount: Decimal | None, currency: str) -> Money | None:
    """All digits that matter, at least eight decimals; unknown stays null."""
    if amount is None:
        return None
    digits = f"{amount.normalize():f}"
    whole, _, fraction = digits.partition(".")
    return {"amount": f"{whole}.{fraction.ljust(8, '0')}", "currency": currency}

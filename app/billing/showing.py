"""Rates in words, for the administration and for commands, and read from them."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from app.billing.types import Rate


def rates_words(rates: Sequence[Rate], currency: str) -> str:
    """`input 2.5, output 10, input from 200001 tokens 5 USD`."""
    shown = ", ".join(f"{_where(rate)} {_digits(rate.price)}" for rate in sorted(rates, key=_where))
    return f"{shown} {currency}"


def rates_difference(before: Sequence[Rate], after: Sequence[Rate], currency: str) -> str:
    """Only what differs: `cache_read 1 → none, input 2.5 → 3 USD`."""
    old, new = ({_where(r): _digits(r.price) for r in rates} for rates in (before, after))
    parts = [
        f"{name} {old.get(name, 'none')} → {new.get(name, 'none')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    return f"{', '.join(parts) or 'the same rates in'} {currency}"


def rates_read(text: str) -> list[Rate]:
    """Rates written one a line, as `component price [per units] [from tokens]`: `input 5 from 200001`,
    `web_search 10 per 1000`. Errors: ValueError naming the line."""
    return [_read(line) for line in text.splitlines() if line.strip()]


_OPTIONS = {"per": "per_units", "from": "min_prompt_tokens"}


def _read(line: str) -> Rate:
    component, *rest = line.split()
    try:
        price, options = Decimal(rest[0]), rest[1:]
        known = {_OPTIONS[name]: int(value) for name, value in zip(options[::2], options[1::2], strict=True)}
    except (LookupError, InvalidOperation, ValueError) as exc:
        raise ValueError(
            f"“{line.strip()}” is no rate; write such as “input 5 from 200001” or “web_search 10 per 1000”."
        ) from exc
    return Rate(component=component, price=price, **known)


def _where(rate: Rate) -> str:
    tier = f" from {rate.min_prompt_tokens} tokens" if rate.min_prompt_tokens else ""
    per = {1: " each", 1000: " per thousand"}.get(rate.per_units, "")
    return f"{rate.component}{tier}{per}"


def _digits(price: Decimal) -> str:
    return f"{price.normalize():f}"

"""The rules of money, pure: no database, no float, no rounding before the screen.

A price has at most 9 decimals and is per 1, 1,000 or 1,000,000 units, so price × whole units has at most 15 and is
exact. `billing_lines` in SQL books by the same rules; a test holds the two against each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from app.billing.types import INPUT_COMPONENTS, OUTPUT_COMPONENTS, SAME_AS, Line, Rate

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_SHIFT = {1: 0, 1_000: -3, 1_000_000: -6}

REQUEST = "request"
"""Component of the fee for a call as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What a hold must assume for prompts of one size. Rates are per single token."""

    from_: int
    upto: int | None
    """Largest prompt of this tier, in tokens; None: no end."""
    input_rate: Decimal | None
    """The dearest input component: uncached, cache read or cache write. None: not known."""
    output_rate: Decimal | None
    fee: Decimal

    def as_json(self) -> dict[str, Any]:
        """As `PriceVersion.dearest` keeps it; amounts are text."""
        return {
            "from": self.from_,
            "upto": self.upto,
            "in": None if self.input_rate is None else f"{self.input_rate:f}",
            "out": None if self.output_rate is None else f"{self.output_rate:f}",
            "fee": f"{self.fee:f}",
        }


def per_unit(rate: Rate) -> Decimal:
    """The price of one unit, exact."""
    return rate.price.scaleb(_SHIFT[rate.per_units], context=_EXACT)


def complete(rates: Sequence[Rate]) -> tuple[Rate, ...]:
    """The rates with the components of `SAME_AS` written out at each tier of the component they follow.

    So that no token that a server reports apart is ever without a price. Others (audio, images, longer cache writes)
    stay unknown unless named.
    """
    named = {r.component for r in rates}
    copies = [
        Rate(component=name, price=r.price, per_units=r.per_units, min_prompt_tokens=r.min_prompt_tokens)
        for name, like in SAME_AS.items()
        if name not in named
        for r in rates
        if r.component == like
    ]
    return (*rates, *copies)


def dearest(rates: Sequence[Rate]) -> tuple[Tier, ...]:
    """What to assume before the call, by prompt size: the dearest component of each side at every tier bound."""
    bounds = sorted({r.min_prompt_tokens for r in rates})
    ends = [b - 1 for b in bounds[1:]] + [None]
    return tuple(_tier(rates, bound, end) for bound, end in zip(bounds, ends, strict=True))


def hold_amount(tiers: Sequence[Tier], *, input_tokens: int, output_tokens: int) -> Decimal | None:
    """The most a call can cost, over every tier its prompt may fall in. None: a needed rate is not known.

    A dearer tier may begin below the prompt's size, because the count before the call is an upper bound.
    """
    amounts = []
    for tier in tiers:
        if tier.from_ > input_tokens:
            continue
        if (tier.input_rate is None and input_tokens) or (tier.output_rate is None and output_tokens):
            return None
        held = input_tokens if tier.upto is None else min(input_tokens, tier.upto)
        amounts.append(
            _EXACT.add(
                _EXACT.add(tier.fee, _EXACT.multiply(tier.input_rate or Decimal(0), Decimal(held))),
                _EXACT.multiply(tier.output_rate or Decimal(0), Decimal(output_tokens)),
            )
        )
    return max(amounts, default=None)


def charge_lines(
    rates: Sequence[Rate], *, quantities: Mapping[str, int], prompt_tokens: int
) -> tuple[Line, ...]:
    """One line for each component used, at the tier that the whole prompt hits; the fee of a call is among them.

    Raises KeyError naming a component without a rate: an unknown price is never 0.
    """
    fee = {REQUEST: 1} if _rate_at(rates, REQUEST, prompt_tokens) else {}
    lines = []
    for component, quantity in {**quantities, **fee}.items():
        rate = _rate_at(rates, component, prompt_tokens)
        if rate is None:
            raise KeyError(component)
        amount = _EXACT.multiply(per_unit(rate), Decimal(quantity))
        lines.append(Line(component=component, quantity=quantity, rate=rate, amount=amount))
    return tuple(lines)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """An exact sum."""
    result = Decimal(0)
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def for_display(amount: Decimal, *, decimals: int = 8) -> Decimal:
    """Rounded half-even for a screen or an answer; never booked, never added up."""
    return amount.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)


def _rate_at(rates: Sequence[Rate], component: str, prompt_tokens: int) -> Rate | None:
    reached = [r for r in rates if r.component == component and r.min_prompt_tokens <= prompt_tokens]
    return max(reached, key=lambda r: r.min_prompt_tokens, default=None)


def _tier(rates: Sequence[Rate], bound: int, end: int | None) -> Tier:
    def highest(components: Sequence[str]) -> Decimal | None:
        found = [_rate_at(rates, component, bound) for component in components]
        return max((per_unit(r) for r in found if r), default=None)

    return Tier(
        from_=bound,
        upto=end,
        input_rate=highest(INPUT_COMPONENTS),
        output_rate=highest(OUTPUT_COMPONENTS),
        fee=highest([REQUEST]) or Decimal(0),
    )

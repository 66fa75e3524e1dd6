"""The rules of money, pure: no database, no float, no rounding before the screen.

A price has at most 9 decimals and is per 1, 1,000 or 1,000,000 units, so price × whole units has at most 15 and is
exact. `billing_lines` in SQL books by the same rules; a test holds the two against each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from app.billing.types import INPUT_COMPONENTS, OUTPUT_COMPONENTS, SAME_AS, Line, Rate, TierMode

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

    So that no token that a server reports apart is ever without a price. Others (audio, longer cache writes) stay
    unknown unless named.
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


def marked(rates: Sequence[Rate], factor: Decimal) -> tuple[Rate, ...]:
    """The rates under a team's factor: each rounded half-even to its 9 decimals, so that all that follows is exact."""
    return tuple(
        replace(rate, price=_even(_EXACT.multiply(Decimal(rate.price), factor), 9)) for rate in rates
    )


def proposal(*, per_hour: Decimal, tokens_per_second: Decimal, utilisation: Decimal) -> Decimal:
    """A price per million tokens that recovers a server's cost when it is used as planned; to 9 decimals.

    `tokens_per_second`: input and output together, at the load beyond which more callers only wait (the knee).
    `utilisation`: the part of the time it is meant to be that busy. Errors: ValueError.
    """
    if not (per_hour >= 0 and tokens_per_second > 0 and 0 < utilisation <= 1):
        raise ValueError(
            "A proposal needs a cost of 0 or more, tokens per second above 0 and a utilisation above 0 and up to 1."
        )
    per_second = _EXACT.multiply(tokens_per_second, _EXACT.multiply(utilisation, Decimal(3600)))
    return _even(_EXACT.divide(per_hour.scaleb(6, context=_EXACT), per_second), 9)


def dearest(rates: Sequence[Rate], tier_mode: TierMode = "whole_request") -> tuple[Tier, ...]:
    """What to assume before the call, by prompt size: the dearest component of each side at every tier bound.

    Marginal tiers: the dearest of all that the prompt, and any output, can reach.
    """
    bounds = sorted({r.min_prompt_tokens for r in rates})
    ends = [b - 1 for b in bounds[1:]] + [None]
    if tier_mode == "marginal":
        return tuple(_reached(rates, bound) for bound in bounds)
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
    rates: Sequence[Rate],
    *,
    quantities: Mapping[str, int],
    prompt_tokens: int,
    tier_mode: TierMode = "whole_request",
) -> tuple[Line, ...]:
    """One line for each component used; the fee of a call is among them.

    The whole prompt chooses the tier of all of it. With marginal tiers a component has a line for each tier that its
    own quantity reaches. Raises KeyError naming a component without a rate: an unknown price is never 0.
    """
    fee = {REQUEST: 1} if _rate_at(rates, REQUEST, prompt_tokens) else {}
    lines = []
    for component, quantity in {**quantities, **fee}.items():
        own = sorted((r for r in rates if r.component == component), key=lambda r: r.min_prompt_tokens)
        parts = (
            _slices(own, quantity)
            if tier_mode == "marginal"
            else [(r, quantity) for r in own if r.min_prompt_tokens <= prompt_tokens][-1:]
        )
        if not parts:
            raise KeyError(component)
        for rate, part in parts:
            amount = _EXACT.multiply(per_unit(rate), Decimal(part))
            lines.append(Line(component=component, quantity=part, rate=rate, amount=amount))
    return tuple(lines)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """An exact sum."""
    result = Decimal(0)
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def for_display(amount: Decimal, *, decimals: int = 8) -> Decimal:
    """Rounded half-even for a screen or an answer; never booked, never added up."""
    return _even(amount, decimals)


def _even(amount: Decimal, decimals: int) -> Decimal:
    return amount.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)


def _slices(rates: Sequence[Rate], quantity: int) -> list[tuple[Rate, int]]:
    """(rate, units) of each tier that a quantity reaches; `rates` ascend by their bounds."""
    bounds = [r.min_prompt_tokens for r in rates]
    ends = [*bounds[1:], quantity]
    return [
        (rate, min(quantity, end) - bound)
        for rate, bound, end in zip(rates, bounds, ends, strict=True)
        if bound < quantity
    ]


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


def _reached(rates: Sequence[Rate], bound: int) -> Tier:
    def highest(components: Sequence[str], upto: int | None) -> Decimal | None:
        return max(
            (
                per_unit(r)
                for r in rates
                if r.component in components and (upto is None or r.min_prompt_tokens <= upto)
            ),
            default=None,
        )

    return Tier(
        from_=bound,
        upto=None,
        input_rate=highest(INPUT_COMPONENTS, bound),
        output_rate=highest(OUTPUT_COMPONENTS, None),
        fee=highest([REQUEST], bound) or Decimal(0),
    )

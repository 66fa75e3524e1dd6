"""The answer of the pre-count: tokens by part, what they would cost, and whether the turn would be admitted."""

from decimal import Decimal
from typing import Any

from django.conf import settings

from app.billing.pricing import dearest as dearest_tiers
from app.billing.pricing import for_display, hold_amount
from app.billing.selectors import limits_remaining, price_current
from app.billing.types import LimitState
from app.chat.planning import fitted, payer_of
from app.chat.precount import Estimate
from app.chat.types import Ask
from app.common.money import money

EXPECTED_OUTPUT_TOKENS = 200


def verdict_of(ask: Ask) -> dict[str, Any]:
    """The body of `precount/` for a draft. Errors: ContextTooLong with both numbers."""
    ask, estimate = fitted(ask)
    low, expected, high = _prices(ask, estimate)
    limits = limits_remaining(payer_of(ask))
    return {
        **estimate.public(),
        "model": ask.model,
        "payer": {"team_id": str(ask.team_id), "name": ask.team_name},
        "price": {
            "low": money(low, settings.CURRENCY),
            "expected": money(expected, settings.CURRENCY),
            "high": money(high, settings.CURRENCY),
        },
        "time": None,
        "notices": [*(ask.route.notices if ask.route else ()), *estimate.notices],
        "limits": [limit.as_detail() for limit in limits],
        "verdict": _verdict(estimate, low, high, limits),
    }


def _prices(ask: Ask, estimate: Estimate) -> tuple[Decimal | None, Decimal | None, Decimal | None]:
    """(nothing found and a one-word answer, the usual, everything full), over the dearest deployment."""
    spans = (
        (estimate.total_expected - estimate.retrieved_expected, 1),
        (estimate.total_expected, min(EXPECTED_OUTPUT_TOKENS, estimate.max_output_tokens)),
        (estimate.held_input, estimate.max_output_tokens),
    )
    low, expected, high = (_dearest(ask, *span) for span in spans)
    return low, expected, high


def _dearest(ask: Ask, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Unknown as soon as one deployment's price is unknown: that one might answer."""
    amounts = []
    for price_key in dict.fromkeys(target.price_key for target in ask.targets):
        price = price_current(price_key, team_id=ask.team_id)
        if price is None:
            return None
        tiers = dearest_tiers(price.rates, price.tier_mode)
        amount = hold_amount(tiers, input_tokens=input_tokens, output_tokens=output_tokens)
        if amount is None:
            return None
        amounts.append(for_display(amount))
    return max(amounts)


def _verdict(estimate: Estimate, low: Decimal | None, high: Decimal | None, limits: list[LimitState]) -> str:
    """`ok`, `capped` (the answer will be shorter than asked) or `refused`, as the reservation will decide."""
    needed = {
        "money": (low, high),
        "tokens": (Decimal(estimate.held_input), Decimal(estimate.held_input + estimate.max_output_tokens)),
        "requests": (Decimal(1), Decimal(1)),
    }
    worst = "capped" if any(n["code"] == "output_cap_lowered" for n in estimate.notices) else "ok"
    for limit in limits:
        least, most = needed[limit.unit]
        if not limit.hard or least is None or most is None:
            continue
        if limit.remaining < least:
            return "refused"
        if limit.remaining < most:
            worst = "capped"
    return worst

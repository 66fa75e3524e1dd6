"""The answer of the pre-count: tokens by part, what they would cost, and whether the turn would be admitted."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings

from app.billing.attempts import first_token_times
from app.billing.errors import BudgetMissing, PriceMissing
from app.billing.estimating import call_price
from app.billing.pausing import spending_refused
from app.billing.selectors import limits_remaining
from app.billing.types import OUTPUT_FLOOR, LimitState
from app.chat.planning import payer_of, plan_of
from app.chat.precount import Estimate
from app.chat.showing import before
from app.chat.types import Ask
from app.common.cache import remembered
from app.common.errors import AppError
from app.common.money import money

EXPECTED_OUTPUT_TOKENS = 200


def verdict_of(ask: Ask, estimate: Estimate) -> dict[str, Any]:
    """The body of `precount/` for a draft that was counted."""
    low, expected, high = _prices(ask, estimate)
    limits = limits_remaining(payer_of(ask), price_key=ask.targets[0].price_key)
    barred = _barred(ask, high, limits)
    return {
        **estimate.public(),
        "model": ask.model,
        "payer": {"team_id": str(ask.team_id), "name": ask.team_name},
        "price": {
            "low": money(low, settings.CURRENCY),
            "expected": money(expected, settings.CURRENCY),
            "high": money(high, settings.CURRENCY),
        },
        "time": _time(ask.targets[0].deployment_id),
        "notices": [*before(ask), *estimate.notices],
        "attachments": [item.public() for item in ask.attached.placed],
        "limits": [limit.as_detail() for limit in limits],
        "verdict": "refused" if barred else _verdict(estimate, _least(ask, estimate), high, limits),
        "reason": None if barred is None else {"code": barred.name, "message": barred.message},
    }


def _barred(ask: Ask, most: Decimal | None, limits: list[LimitState]) -> AppError | None:
    """Why the reservation will be refused whatever a limit leaves, in its order; a price of 0 bars nothing."""
    if most == 0:
        return None
    if (paused := spending_refused()) is not None:
        return paused
    money = any(limit.unit == "money" for limit in limits)
    if most is None:
        return PriceMissing(_unpriced(ask)) if money else None
    return None if money or settings.ALLOW_UNLIMITED_SPEND else BudgetMissing()


def _unpriced(ask: Ask) -> str:
    """The price key of the first deployment without a known price."""
    keys = [target.price_key for target in ask.targets]
    return next((key for key in keys if _amount(key, payer_of(ask).team_id, 1, 1) is None), keys[0])


def _least(ask: Ask, estimate: Estimate) -> Decimal | None:
    """The smallest hold that is taken: everything read, and an answer as short as it may become."""
    least = _dearest(ask, estimate.held_input, min(OUTPUT_FLOOR, estimate.max_output_tokens))
    return _with_query(ask, estimate, least)


def _with_query(ask: Ask, estimate: Estimate, amount: Decimal | None) -> Decimal | None:
    """With what is held for embedding the query besides."""
    plan = plan_of(ask, estimate)
    if plan.embedding is None or amount is None:
        return amount
    query = _amount(plan.embedding.price_key, plan.payer.team_id, plan.query_tokens, 0)
    return None if query is None else amount + query


@remembered(10.0)
def _time(deployment_id: UUID) -> dict[str, Any] | None:
    """How long the first token took lately; None where no call is known."""
    found = first_token_times(deployment_id)
    return None if found is None else {"ttft_ms": {"p50": found[0], "p95": found[1]}}


def _prices(ask: Ask, estimate: Estimate) -> tuple[Decimal | None, Decimal | None, Decimal | None]:
    """(nothing found and a one-word answer, the usual, everything full), over the dearest deployment."""
    spans = (
        (estimate.total_expected - estimate.retrieved_expected, 1),
        (estimate.total_expected, min(EXPECTED_OUTPUT_TOKENS, estimate.max_output_tokens)),
        (estimate.held_input, estimate.max_output_tokens),
    )
    low, expected, high = (_dearest(ask, *span) for span in spans)
    return low, expected, _with_query(ask, estimate, high)


def _dearest(ask: Ask, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Unknown as soon as one deployment's price is unknown: that one might answer."""
    amounts = []
    for price_key in dict.fromkeys(target.price_key for target in ask.targets):
        amount = _amount(price_key, payer_of(ask).team_id, input_tokens, output_tokens)
        if amount is None:
            return None
        amounts.append(amount)
    return max(amounts)


def _amount(price_key: str, team_id: UUID | None, input_tokens: int, output_tokens: int) -> Decimal | None:
    return call_price(price_key, team_id=team_id, input_tokens=input_tokens, output_tokens=output_tokens)


def _verdict(
    estimate: Estimate, least: Decimal | None, most: Decimal | None, limits: list[LimitState]
) -> str:
    """`ok`, `capped` (the answer will be shorter than asked) or `refused`, as the reservation will decide."""
    cap = estimate.max_output_tokens
    needed: dict[str, tuple[Decimal | None, Decimal | None]] = {
        "money": (least, most),
        "tokens": (
            Decimal(estimate.held_input + min(OUTPUT_FLOOR, cap)),
            Decimal(estimate.held_input + cap),
        ),
        "requests": (Decimal(1), Decimal(1)),
    }
    worst = "capped" if any(n["code"] == "output_cap_lowered" for n in estimate.notices) else "ok"
    for limit in limits:
        smallest, whole = needed.get(limit.unit, (None, None))
        if not limit.hard or smallest is None or whole is None:
            continue
        if limit.remaining < smallest:
            return "refused"
        if limit.remaining < whole:
            worst = "capped"
    return worst

"""What people choose a model by: window, price, and how fast and how well it answered here lately."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from app.billing.selectors import price_billed
from app.catalog.selectors import Target
from app.chat.models import Turn, TurnState
from app.common.clock import now

MEASURED_TURNS = 50
FRESH = timedelta(minutes=10)


def model_cards(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """What people choose a model by: window, price, and how fast and how well it answered here lately."""
    return [_card(target) | _measured(target.deployment_id) for target in targets]


def _card(target: Target) -> dict[str, Any]:
    price = price_billed(target.price_key)
    names = (
        "context_window",
        "max_output_tokens",
        "clearance",
        "leaves_premises",
        "is_demonstration",
        "tokenizer",
    )
    return {name: getattr(target, name) for name in names} | {
        "id": target.public_name,
        "name": target.public_name,
        "region": target.region or None,
        "price": [
            {
                "component": rate.component,
                "price": rate.price,
                "per_units": rate.per_units,
                "min_prompt_tokens": rate.min_prompt_tokens,
            }
            for rate in price.rates
        ]
        if price
        else None,
    }


def _measured(deployment_id: UUID) -> dict[str, Any]:
    rows = list(
        Turn.objects.filter(deployment_id=deployment_id)
        .exclude(state=TurnState.RUNNING)
        .order_by("-id")
        .values_list("timing", "state", "ended_at")[:MEASURED_TURNS]
    )
    last = next(((state, ended) for _, state, ended in rows if ended and ended > now() - FRESH), None)
    return {
        "ttft_ms": _median(timing.get("ttft_ms") for timing, _, _ in rows),
        "tokens_per_second": _median(timing.get("tokens_per_second") for timing, _, _ in rows),
        "status": None if last is None else "failing" if last[0] == TurnState.FAILED else "up",
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 2) if known else None

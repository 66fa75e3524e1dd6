"""Refusals of billing.

AppError
├── LimitReached (402)
│   ├── BudgetExhausted         a limit has no room for the call
│   └── BudgetMissing           a priced deployment, and no money budget on the way
├── SpendingPaused (402)        staff have paused what costs money
├── PriceMissing (402)          a money budget applies and the price is not known
├── Conflict (409)
│   ├── ReservationConflict     the same key with another body
│   └── PriceConflict           versions would overlap, or the past would change
└── NotFound (404)
    └── ReservationMissing      settling what was never held, without the hold to re-create it from
"""

from typing import Any

from app.billing.naming import Covers
from app.billing.types import LimitState
from app.billing.wording import limit_words, refusal_words
from app.common.clock import now
from app.common.errors import AppError, Conflict, LimitReached, NotFound


class BudgetExhausted(LimitReached):
    """A budget has no room for this call. Nothing was sent and nothing is owed."""

    def __init__(self, limit: LimitState, *, currency: str, covers: Covers) -> None:
        self.limit = limit
        """Of all limits that have no room, the one that resets last."""
        at = now()
        super().__init__(
            refusal_words(limit, covers, currency=currency, at=at),
            detail=refusal_detail(limit, covers, currency),
            retry_after=None if limit.resets_at is None else max(0.0, (limit.resets_at - at).total_seconds()),
        )


def refusal_detail(limit: LimitState, covers: Covers, currency: str) -> dict[str, Any]:
    """The same for a program: the limit, what was asked of it, and who may give more."""
    return {
        **limit.as_detail(),
        "name": limit.name or limit_words(limit, covers),
        "needed": None if limit.needed is None else f"{limit.needed:f}",
        "least": None if limit.least is None else f"{limit.least:f}",
        "raised_by": covers.raised_by.rstrip(","),
        "currency": currency if limit.unit == "money" else None,
    }


class BudgetMissing(LimitReached):
    """This model has a price, and no money budget covers you. Ask an administrator for a budget."""


class SpendingPaused(AppError):
    """An administrator has paused everything that costs money."""

    code, status = "paused", 402

    def __init__(self, reason: str) -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(
            f"An administrator has paused everything that costs money{why}, so this was not sent and nothing was "
            "charged. Models without a price still answer; the rest go on when the pause is lifted.",
            detail={"reason": reason or None},
        )


class PriceMissing(AppError):
    """The price of this model is not known, and a money budget applies, so the call was not sent."""

    code, status = "price_missing", 402

    def __init__(self, price_key: str, component: str | None = None) -> None:
        what = f"“{price_key}” has no price" + (f" for {component}" if component else "")
        super().__init__(
            f"{what}, and a money budget applies, so the call was not sent. An administrator can set a price.",
            detail={"price_key": price_key, "component": component},
        )


class ReservationConflict(Conflict):
    """This key was already used for another call. Send a new key."""

    code, status = "idempotency_key_reused", 422


class PriceConflict(Conflict):
    """A price can only be changed from now on, and versions of one price never overlap."""


class ReservationMissing(NotFound):
    """No such reservation, and no hold was given to re-create it from."""

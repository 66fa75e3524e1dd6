"""Refusals of billing.

AppError
├── LimitReached (402)
│   ├── BudgetExhausted         a limit has no room for the call
│   └── BudgetMissing           a priced deployment, and no money budget on the way
├── PriceMissing (402)          a money budget applies and the price is not known
├── Conflict (409)
│   ├── ReservationConflict     the same key with another body
│   └── PriceConflict           versions would overlap, or the past would change
└── NotFound (404)
    └── ReservationMissing      settling what was never held, without the hold to re-create it from
"""

from app.billing.types import LimitState
from app.common.clock import now
from app.common.errors import AppError, Conflict, LimitReached, NotFound


class BudgetExhausted(LimitReached):
    """A budget has no room for this call. Nothing was sent and nothing is owed."""

    def __init__(self, limit: LimitState, *, currency: str) -> None:
        self.limit = limit
        """Of all limits that have no room, the one that resets last."""
        unit = currency if limit.unit == "money" else limit.unit
        if limit.resets_at is None:
            when, wait = "It does not reset by itself", None
        else:
            when = f"It resets at {limit.resets_at:%Y-%m-%d %H:%M} UTC"
            wait = max(0.0, (limit.resets_at - now()).total_seconds())
        super().__init__(
            f"The limit of {limit.limit:f} {unit} for {limit.name or limit.scope} has {limit.remaining:f} left, "
            f"which is less than this call may need, so it was not sent. {when}; ask for less or for a higher limit.",
            detail={**limit.as_detail(), "currency": currency if limit.unit == "money" else None},
            retry_after=wait,
        )


class BudgetMissing(LimitReached):
    """This model has a price, and no money budget covers you. Ask an administrator for a budget."""


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

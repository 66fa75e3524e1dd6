"""Writes of billing: holds, settlements, prices and budgets. Sync; async code comes through `run_db`.

Public: reservation_hold, reservation_settle, reservation_release, reservation_heartbeat, reservations_sweep,
price_set, budget_set, bootstrap_defaults.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from app.billing.types import Attempt, EndState, Held, Hold, Period, Price, Rate, Scope, Settled, Side, Unit


def reservation_hold(*, hold: Hold) -> Held:
    """Hold what the call may cost at most, in every window of the payer, in one statement.

    Idempotent by `hold.reservation_id`. Send `Held.output_tokens` upstream as the cap.
    Errors: BudgetExhausted, BudgetMissing, PriceMissing (nothing is held then); ReservationConflict.
    """
    raise NotImplementedError


def reservation_settle(
    *, reservation_id: UUID, attempts: Sequence[Attempt], state: EndState | None = None, hold: Hold | None = None
) -> Settled:
    """Book the attempts and end the reservation, durably, in one statement. A second call returns the first's result.

    `state` None: settled when a billed attempt used anything, else released. `hold` re-creates a reservation that a
    database crash forgot; always give it when you have it. Errors: ReservationMissing.
    """
    raise NotImplementedError


def reservation_release(*, reservation_id: UUID, attempts: Sequence[Attempt] = ()) -> Settled:
    """End the reservation without charging the payer; `attempts` are kept, and their cost is booked."""
    raise NotImplementedError


def reservation_heartbeat(*, reservation_id: UUID, ttl_seconds: int = 900, output_tokens: int | None = None,
                          input_tokens: int | None = None) -> bool:
    """Say that the call still runs, and optionally how much was seen. False: the reservation has ended."""
    raise NotImplementedError


def reservations_sweep(*, limit: int = 500) -> list[UUID]:
    """End the holds of processes that died; what was seen of an answer is billed as an estimate. Returns their ids."""
    raise NotImplementedError


def price_set(
    *,
    price_key: str,
    rates: Sequence[Rate],
    approved_by: str,
    source: str = "staff",
    side: Side = "price",
    team_id: UUID | None = None,
    mode: str = "standard",
    effective_from: datetime | None = None,
) -> Price:
    """Set a price from now (or later) on; the version in force is closed at that instant.

    Errors: InvalidInput (no rate, a rate twice), PriceConflict (an instant in the past, or another version later).
    """
    raise NotImplementedError


def budget_set(
    *,
    scope: Scope,
    unit: Unit,
    limit: Decimal | int,
    period: Period,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    key_id: UUID | None = None,
    price_key: str = "",
    name: str = "",
    zone: str | None = None,
    hard: bool = True,
    alert_ratios: Sequence[Decimal] = (),
    set_by: str = "",
) -> UUID:
    """Set a limit and return the budget's id; the same scope, unit, model and period again changes it in place.

    An id left out makes it the default of every team, person or key without an own one (allowance: of every person
    in every team, or of every person in `team_id`). Errors: InvalidInput.
    """
    raise NotImplementedError


def bootstrap_defaults() -> None:
    """Create the installation budget and the default member allowance unless there are any. Safe to repeat."""
    raise NotImplementedError

"""The one door to a model: route → reserve → call → settle.

Everything that costs tokens passes here: chat, `/v1`, query and ingestion embeddings. A reservation is opened
with `reserve`, calls are made through the `Admission` it returns, and `Admission.end` books what they used.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from app.billing import services as billing
from app.billing.errors import ReservationMissing
from app.billing.types import Held
from app.common.aio import finished
from app.common.db import run_db
from app.common.errors import PartFailed
from app.gate.admission import Admission
from app.gate.rates import Stand, Ticket, TooFast, admit
from app.gate.types import CallPlan


async def reserve(
    plan: CallPlan,
    *,
    opening: Callable[[], Held] | None = None,
    counted: Callable[[Sequence[Stand]], None] | None = None,
) -> Admission:
    """Count the call, then hold the dearest it may cost; what one of the two refuses stands in neither.

    `opening` holds in the caller's own way; `counted` is told how the rate limits stand, also of a refused call.
    Errors: RateLimited, BudgetExhausted, PriceMissing, SpendingPaused.
    """
    ticket = await _ticket(plan, counted) if plan.rated else None
    held: Held | None = None
    try:
        held = await finished(run_db(opening or partial(reservation_open, plan)))
        return Admission(plan, held, ticket)
    except (asyncio.CancelledError, PartFailed):
        # Nobody is left to end what was held meanwhile.
        with suppress(PartFailed):
            await finished(run_db(_unheld, plan))
        raise
    finally:
        if held is None and ticket is not None:
            await ticket.give_back()


def _unheld(plan: CallPlan) -> None:
    with suppress(ReservationMissing):
        billing.reservation_release(reservation_id=plan.reservation_id)


async def _ticket(plan: CallPlan, counted: Callable[[Sequence[Stand]], None] | None) -> Ticket | None:
    tell = counted or (lambda _: None)
    try:
        ticket = await admit(plan)
    except TooFast as exc:
        tell(exc.stands)
        raise
    tell(ticket.stands if ticket else ())
    return ticket


def reservation_open(plan: CallPlan) -> Held:
    """The synchronous half of `reserve`, for a caller that is in a database thread already."""
    return billing.reservation_hold(hold=plan.hold)

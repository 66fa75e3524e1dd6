"""Writes of billing: holds and settlements; prices and budgets by name. Sync; async code comes through `run_db`.

Holding and settling are one SQL function each (see `sql/`), so each is one statement and one commit.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection

from app.billing.budgets import bootstrap_defaults, budget_remove, budget_set
from app.billing.errors import (
    BudgetExhausted,
    BudgetMissing,
    PriceMissing,
    ReservationConflict,
    ReservationMissing,
    SpendingPaused,
)
from app.billing.naming import covers_of
from app.billing.noting import noted
from app.billing.prices import price_set
from app.billing.types import (
    Attempt,
    EndState,
    Held,
    Hold,
    Settled,
    Settlement,
)
from app.billing.wire import (
    call,
    call_each,
    call_maybe,
    held_from,
    hold_payload,
    refused_from,
    settled_from,
    settlement_payload,
)

__all__ = (
    "bootstrap_defaults",
    "budget_remove",
    "budget_set",
    "price_set",
    "reservation_heartbeat",
    "reservation_hold",
    "reservation_lower",
    "reservation_orphan",
    "reservation_release",
    "reservation_settle",
    "reservations_heartbeat",
    "reservations_settle",
    "reservations_sweep",
)


def reservation_hold(*, hold: Hold) -> Held:
    """Hold what the call may cost at most, in every window of the payer, in one statement.

    Idempotent by `hold.reservation_id`. Send `Held.output_tokens` upstream as the cap.
    Errors: BudgetExhausted, BudgetMissing, PriceMissing, SpendingPaused (nothing is held then); ReservationConflict.
    """
    answer = call(
        "billing_reserve",
        hold_payload(hold, currency=settings.CURRENCY, allow_unlimited=settings.ALLOW_UNLIMITED_SPEND),
    )
    if "refused" in answer:
        limit = refused_from(answer)[0]
        raise BudgetExhausted(limit, currency=settings.CURRENCY, covers=covers_of(limit.subject))
    if "paused" in answer:
        raise SpendingPaused(answer["paused"]["reason"])
    if "price_missing" in answer:
        raise PriceMissing(answer["price_missing"]["price_key"], answer["price_missing"]["component"])
    if "no_budget" in answer:
        raise BudgetMissing
    if "conflict" in answer:
        raise ReservationConflict
    return noted(held_from(answer))


def reservation_lower(*, reservation_id: UUID, price_keys: Sequence[str], input_tokens: int) -> bool:
    """Hold no more than the prompt as it was built can take; the cap stays. False: nothing was to be lowered.

    `price_keys` are the routes of the hold, without what was held besides.
    """
    payload = {"reservation_id": reservation_id, "price_keys": price_keys, "input_tokens": input_tokens}
    return call_maybe("billing_lower", payload) is not None


def reservation_settle(
    *,
    reservation_id: UUID,
    attempts: Sequence[Attempt],
    state: EndState | None = None,
    hold: Hold | None = None,
    by_sweeper: bool = False,
) -> Settled:
    """Book the attempts and end the reservation, durably, in one statement. A repeat returns what was booked first.

    `state` None: settled when a billed attempt used anything, else released. `hold` re-creates a reservation that a
    database crash forgot: give it whenever you have it. `by_sweeper`: an assumption about a process that seems dead;
    should it settle after all, its truth replaces the assumption by adjusting entries. Errors: ReservationMissing.
    """
    settlement = Settlement(reservation_id, tuple(attempts), state, hold, by_sweeper)
    return reservations_settle(settlements=[settlement])[0]


def reservations_settle(*, settlements: Sequence[Settlement]) -> list[Settled]:
    """End several reservations in one statement and one commit: all or, when the database refuses one, none.

    Errors: ReservationMissing for one that is not there and comes without its hold; the others are booked then.
    """
    # Rows are locked by ascending id here and by the pulse, so that the two never wait for each other.
    places = sorted(range(len(settlements)), key=lambda place: settlements[place].reservation_id)
    answers = call_each(
        "billing_settle", [settlement_payload(settlements[n], currency=settings.CURRENCY) for n in places]
    )
    if any("missing" in answer for answer in answers):
        raise ReservationMissing
    settled = dict(zip(places, map(settled_from, answers), strict=True))
    return [settled[place] for place in range(len(settlements))]


def reservation_orphan(*, reservation_id: UUID) -> Settled:
    """End the reservation of a process that died, by what its pulse wrote down of the call: billed by an estimate when
    words were seen, else our cost alone. Its truth, should it come, replaces that. Errors: ReservationMissing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_orphan(%s)::text", [reservation_id])
        answer = json.loads(cursor.fetchone()[0], parse_float=Decimal)
    if "missing" in answer:
        raise ReservationMissing
    return settled_from(answer)


def reservation_release(*, reservation_id: UUID, attempts: Sequence[Attempt] = ()) -> Settled:
    """End the reservation without charging the payer; `attempts` are kept, and their cost is booked.

    Errors: ReservationMissing.
    """
    return reservation_settle(reservation_id=reservation_id, attempts=attempts, state="released")


def reservation_heartbeat(
    *,
    reservation_id: UUID,
    ttl_seconds: int = 900,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> bool:
    """Say that one call still runs; see `reservations_heartbeat`. False: the reservation has ended."""
    seen = {reservation_id: (input_tokens, output_tokens)}
    return reservations_heartbeat(seen=seen, ttl_seconds=ttl_seconds) == {reservation_id}


def reservations_heartbeat(
    *, seen: Mapping[UUID, tuple[int | None, int | None]], ttl_seconds: int = 900
) -> set[UUID]:
    """Say that calls still run, and how many input and output tokens each has seen so far (None: not known).

    What was seen is what the sweeper bills, as an estimate, when the process dies. Returns those still held.
    """
    ids = sorted(seen)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH x AS MATERIALIZED (
              SELECT r.id, y.input_tokens, y.output_tokens
              FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[]) AS y(id, input_tokens, output_tokens)
              JOIN billing_reservation r ON r.id = y.id
              WHERE r.state = 'held' ORDER BY r.id FOR NO KEY UPDATE OF r
            )
            UPDATE billing_reservation r SET heartbeat_at = now(), expires_at = now() + %s * interval '1 second',
              seen_input_tokens = greatest(r.seen_input_tokens, x.input_tokens),
              seen_output_tokens = greatest(r.seen_output_tokens, x.output_tokens)
            FROM x WHERE r.id = x.id
            RETURNING r.id
            """,
            [ids, [seen[i][0] for i in ids], [seen[i][1] for i in ids], ttl_seconds],
        )
        return {row[0] for row in cursor.fetchall()}


def reservations_sweep(*, limit: int = 500) -> list[UUID]:
    """End the holds of processes that died; what was seen of an answer is billed as an estimate. Returns their ids."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT unnest(billing_sweep(%s))", [limit])
        return [row[0] for row in cursor.fetchall()]

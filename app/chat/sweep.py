"""Ending what a dead process left: its turns, with the text that was shown, and their reservations."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast
from uuid import UUID

from django.db import Error, transaction

from app.billing import services as billing
from app.billing.errors import ReservationMissing
from app.billing.types import Attempt, Buckets
from app.catalog.tokenizers import tokenizer
from app.chat.event_store import events_key
from app.chat.events import parsed
from app.chat.models import Turn, TurnState
from app.common.clock import now
from app.common.money import money
from app.common.redis_door import Stored, Unavailable, sync_redis

log = logging.getLogger(__name__)

STALE_SECONDS = 20
"""Four missed pulses: the process that owned the turn is gone."""


def turns_sweep() -> list[UUID]:
    """End every running turn whose pulse stopped. Safe in several processes at once; returns what was ended."""
    stale = now() - timedelta(seconds=STALE_SECONDS)
    found = Turn.objects.filter(state=TurnState.RUNNING, heartbeat_at__lt=stale).values_list("id", flat=True)[
        :200
    ]
    return [turn_id for turn_id in found if _try_interrupt(turn_id)]


def _try_interrupt(turn_id: UUID) -> bool:
    """`turn_interrupt`; a row that cannot be ended does not keep the others from it."""
    try:
        return turn_interrupt(turn_id)
    except Error:
        log.exception("A turn could not be ended.", extra={"data": {"turn_id": str(turn_id)}})
        return False


@transaction.atomic
def turn_interrupt(turn_id: UUID) -> bool:
    """End one turn as interrupted. False when somebody else did meanwhile."""
    turn = (
        Turn.objects.select_for_update(skip_locked=True).filter(id=turn_id, state=TurnState.RUNNING).first()
    )
    if turn is None:
        return False
    shown = _shown(turn_id)
    # The fuller of what readers were sent and what the last pulse stored: text a screen had shown is never lost.
    turn.answer = max(turn.answer, shown.text, key=len)
    turn.reasoning = max(turn.reasoning, shown.reasoning, key=len)
    turn.state, turn.finish_reason, turn.ended_at = TurnState.INTERRUPTED, "interrupted", now()
    turn.usage = _settle(turn, _progress(turn, shown))
    turn.save(update_fields=["answer", "reasoning", "state", "finish_reason", "ended_at", "usage"])
    log.warning("A turn whose process died was ended.", extra={"data": {"turn_id": str(turn_id)}})
    return True


Progress = Literal["not sent", "perhaps sent", "sent", "begun"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the stored events had told readers; nothing where the broker has none."""

    text: str = ""
    reasoning: str = ""
    phases: frozenset[str] = frozenset()
    """Of the `status` events: `waiting` once the call was sent, `generating` once the model had begun."""
    last_phase: str = ""
    """The phase of the very last event; empty when that is another event."""


def _progress(turn: Turn, shown: _Shown) -> Progress:
    """How far the call to the model had come. Without stored events only the reservation may know."""
    if "generating" in shown.phases or turn.answer or turn.reasoning:
        return "begun"
    if "waiting" in shown.phases:
        return "sent"
    # That a call goes out is stored a moment after it did: only a step that comes before it excludes one.
    return "not sent" if shown.last_phase in {"retrieving", "queued"} else "perhaps sent"


def _shown(turn_id: UUID) -> _Shown:
    try:
        entries = cast("Stored", sync_redis().xrange(events_key(turn_id)))
    except Unavailable:
        return _Shown()
    events = [event for _, fields in entries for event in parsed(fields[b"f"])]
    deltas = [data for name, data in events if name == "delta"]
    return _Shown(
        text="".join(data.get("text", "") for data in deltas),
        reasoning="".join(data.get("reasoning", "") for data in deltas),
        phases=frozenset(data.get("phase", "") for name, data in events if name == "status"),
        last_phase=events[-1][1].get("phase", "") if events else "",
    )


def _settle(turn: Turn, progress: Progress) -> dict[str, object] | None:
    """Book the broken call by our own count when the model had begun, as our cost when it was sent, else give the hold
    back."""
    if turn.reservation_id is None:
        return None
    try:
        return _booked(turn, turn.reservation_id, progress)
    except ReservationMissing:
        # A crash of the database forgot the hold. Nothing is held then, and the turn has to end all the same.
        log.warning("A turn had no reservation.", extra={"data": {"turn_id": str(turn.id)}})
        return None


def _booked(turn: Turn, reservation_id: UUID, progress: Progress) -> dict[str, object] | None:
    if progress == "perhaps sent":
        billing.reservation_orphan(reservation_id=reservation_id)
        return None
    if progress == "not sent":
        billing.reservation_settle(
            reservation_id=reservation_id, attempts=(), state="released", by_sweeper=True
        )
        return None
    tokens = tokenizer(turn.estimate.get("tokenizer", "o200k_base"))
    given = turn.estimate["input_tokens"]["total"]["expected"]
    attempt = Attempt(
        outcome="failed",
        buckets=Buckets(
            input=given, output=tokens.count(turn.answer), reasoning=tokens.count(turn.reasoning)
        ),
        # Sent, and not seen to write: our cost, as of a call that a person stopped before its first word.
        billed=progress == "begun",
        source="local",
        estimated=True,
        estimate_reason="sweeper",
        deployment_id=turn.deployment_id,
        tokenizer=tokens.name,
        error="ProcessDied",
    )
    settled = billing.reservation_settle(reservation_id=reservation_id, attempts=(attempt,), by_sweeper=True)
    if progress == "sent":
        return None
    return {
        "input_tokens": settled.input_tokens,
        "output_tokens": settled.output_tokens,
        "cached_input_tokens": 0,
        "reasoning_tokens": attempt.buckets.reasoning,
        "estimated": settled.estimated,
        "price": money(settled.price, settled.currency),
    }

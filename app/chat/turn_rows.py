"""The rows of a turn: opened with its reservation, closed with its answer and the passages that were sent."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.db import (
    DatabaseError,
    Error,
    IntegrityError,
    InterfaceError,
    OperationalError,
    transaction,
)

from app.accounts.models import Level
from app.accounts.selectors import Caller
from app.billing import services as billing
from app.billing.types import Held
from app.catalog.selectors import highest_level
from app.chat.events import TurnLog
from app.chat.models import SentPassage, Turn, TurnState
from app.chat.precount import Estimate
from app.chat.selectors import turn_get
from app.chat.titling import title_cut
from app.chat.types import Ask, ClosedTurn
from app.common.aio import patiently
from app.common.clock import now
from app.common.db import prepared
from app.common.errors import NotFound, PartFailed
from app.gate.services import reservation_open
from app.gate.types import CallPlan

log = logging.getLogger(__name__)
T = TypeVar("T")

_DELAYED: Mapping[str, Any] = {
    "code": "writing_delayed",
    "message": "The database does not answer; your answer is stored as soon as it is back.",
}


def turn_open(ask: Ask, estimate: Estimate, plan: CallPlan) -> Held:
    """Hold, then write the running turn: nothing of a refused question is stored. Safe to run twice.

    Errors: BudgetExhausted, PriceMissing; NotFound when the conversation was deleted meanwhile.
    """
    held = reservation_open(plan)
    try:
        _turn_insert(ask, estimate, plan)
    except IntegrityError as exc:
        if not Turn.objects.filter(id=ask.turn_id).exists():
            billing.reservation_release(reservation_id=plan.reservation_id)
            raise NotFound("This conversation was deleted; your question was not sent.") from exc
    except (OperationalError, InterfaceError):
        # Tried once more on a new connection, with this hold: one that was released would stay so. If that fails too,
        # `reserve` ends it.
        raise
    except DatabaseError:
        billing.reservation_release(reservation_id=plan.reservation_id)
        raise
    return held


# One statement and one commit for the row and its conversation, which moves to the top, gets a title from its first
# question, and never loses a privacy level: raised from what the row says now, for another turn may have touched
# something private meanwhile.
_OPEN = """
WITH opened AS (
  INSERT INTO chat_turn (
    id, created_at, conversation_id, team_id, parent_id, asked_by_id, question, attachments, answer, reasoning, state,
    finish_reason, model, deployment_id, reservation_id, level, estimate, route, notices, quotes, timing, started_at,
    heartbeat_at, stop_requested
  ) VALUES (
    %(id)s, clock_timestamp(), %(conversation)s, %(team)s, %(parent)s, %(asked_by)s, %(question)s,
    %(attachments)s::jsonb, '', '', 'running', '', %(model)s, %(deployment)s, %(reservation)s, %(level)s,
    %(estimate)s::jsonb, %(route)s::jsonb, '[]', '[]', '{}', clock_timestamp(), clock_timestamp(), false
  ) RETURNING conversation_id
)
UPDATE chat_conversation c SET updated_at = clock_timestamp(), model = %(chosen)s,
  title = CASE WHEN c.title = '' THEN %(title)s ELSE c.title END,
  level = CASE WHEN c.level = ANY (%(lower)s) THEN %(level)s ELSE c.level END
FROM opened WHERE c.id = opened.conversation_id
"""


def _turn_insert(ask: Ask, estimate: Estimate, plan: CallPlan) -> None:
    values: dict[str, Any] = {
        "id": ask.turn_id,
        "conversation": ask.conversation_id,
        "team": ask.team_id,
        "parent": ask.parent_id,
        "asked_by": ask.caller.user_id,
        "question": ask.question,
        "attachments": json.dumps([item.public() for item in ask.attached.placed]),
        "model": ask.model,
        "chosen": ask.model_chosen,
        "deployment": plan.targets[0].deployment_id,
        "reservation": plan.reservation_id,
        "level": ask.level,
        "lower": [level for level in Level.values if level != ask.level == highest_level(level, ask.level)],
        "estimate": json.dumps(estimate.public()),
        "route": json.dumps(ask.route.as_json()) if ask.route else None,
        "title": title_cut(ask.question),
    }
    with prepared() as cursor:
        cursor.execute(_OPEN, values)


def turn_close(row: ClosedTurn) -> None:
    """Store how a turn ended, also over what the sweeper assumed meanwhile. Safe to run twice.

    What the database refuses for good is left to the sweeper: the call is booked by then and the reader told.
    """
    try:
        _turn_close(row)
    except (OperationalError, InterfaceError):
        raise
    except Error:
        log.exception("The database refused to store a finished turn.")


_CLOSE = """
UPDATE chat_turn SET answer = %(answer)s, reasoning = %(reasoning)s, state = %(state)s,
  finish_reason = %(finish_reason)s, error = %(error)s::jsonb, quotes = %(quotes)s::jsonb,
  matches = %(matches)s::jsonb, notices = %(notices)s::jsonb, usage = %(usage)s::jsonb, timing = %(timing)s::jsonb,
  deployment_id = %(deployment)s, model = %(model)s, ended_at = %(ended_at)s
WHERE id = %(id)s
"""


def _turn_close(row: ClosedTurn) -> None:
    if not row.passages:
        _turn_update(row)
        return
    with transaction.atomic():
        # No row: the conversation was deleted while the model wrote. The ledger has the call.
        if _turn_update(row):
            SentPassage.objects.bulk_create(_sent(row), ignore_conflicts=True)


def _turn_update(row: ClosedTurn) -> int:
    """How many rows there were to change."""
    error = row.ending.error
    failure = error and {"code": error.code, "message": error.message, "retryable": error.retryable}
    values: dict[str, Any] = {
        "id": row.turn_id,
        "answer": row.answer,
        "reasoning": row.reasoning,
        "state": row.ending.state,
        "finish_reason": row.ending.finish_reason,
        "error": json.dumps(failure) if failure else None,
        "quotes": json.dumps(row.quotes),
        "matches": None if row.matches is None else json.dumps(row.matches),
        "notices": json.dumps(row.notices),
        "usage": json.dumps(dict(row.usage)),
        "timing": json.dumps(dict(row.timing)),
        "deployment": row.deployment_id,
        "model": row.model,
        "ended_at": now(),
    }
    with prepared() as cursor:
        cursor.execute(_CLOSE, values)
        count: int = cursor.rowcount
    return count


def _sent(row: ClosedTurn) -> list[SentPassage]:
    """The passages exactly as the model saw them."""
    return [
        SentPassage(
            turn_id=row.turn_id,
            team_id=row.team_id,
            number=number,
            passage_id=p.id,
            document_id=p.document_id,
            document_version=p.document_version,
            collection_id=p.collection_id,
            title=p.title[:500],
            heading=p.heading,
            page=p.page,
            page_end=p.page_end,
            start=p.start,
            end=p.end,
            text=p.text,
            sha256=p.sha256,
            score=p.score,
            cited=number in row.cited,
            whole=number <= row.whole,
            warnings=list(p.warnings),
        )
        for number, p in enumerate(row.passages, 1)
    ]


async def persist(write: Callable[[], Awaitable[T]], turn_log: TurnLog) -> T | None:
    """Await `write()`, trying again while the database is away; None when it stayed away for two minutes.

    What is written this way has already happened, so giving up early would lose it. What the database refuses for
    good gives None too: the reader is still told an end, and the sweeper ends what is left.
    """
    said = False

    def say() -> None:
        nonlocal said
        if not said:
            said = True
            turn_log.emit("notice", _DELAYED)

    try:
        return await patiently(write, waiting=say)
    except PartFailed:
        log.exception("The database stayed away: a finished turn could not be written.")
    except Error:
        log.exception("The database refused to store a finished turn.")
    return None


def turn_stop(caller: Caller, turn_id: UUID) -> str:
    """Note that a person wants this turn to end; its process also reads this at its next pulse. Returns the state."""
    turn = turn_get(caller, turn_id)
    if turn.state == TurnState.RUNNING:
        Turn.objects.filter(id=turn.id, state=TurnState.RUNNING).update(stop_requested=True)
        return "stopping"
    return turn.state

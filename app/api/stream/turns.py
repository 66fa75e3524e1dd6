"""Turns of a conversation: asked, followed, resumed, stopped; and the pre-count before any of it."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from app.accounts.selectors import Caller
from app.api.services import (
    ABANDONED,
    Claim,
    fingerprint_of,
    idempotency_claim,
    idempotency_owner,
    idempotency_release,
)
from app.api.stream.http import Request, Responder, as_uuid, typed
from app.api.stream.sending import frames_send
from app.chat.asking import ask_in_conversation
from app.chat.event_store import EventsMissing, EventStore
from app.chat.events import TurnEvent
from app.chat.history import NEWEST
from app.chat.messages import messages_of
from app.chat.models import Turn
from app.chat.replay import ended_frames, frames_rechecked, shows_passages
from app.chat.runs import Run, runs
from app.chat.selectors import turn_get
from app.chat.turn import take_turn
from app.chat.turn_rows import turn_stop
from app.chat.types import Ask
from app.common.clock import now
from app.common.db import run_db
from app.common.errors import Conflict, InvalidInput, Restarting
from app.common.models import uuid7
from app.common.redis_door import Unavailable

_KEY = "idempotency-key"
Form: TypeAlias = Literal["stream", "whole", "background"]
_EVENT_NUMBER = re.compile(r"[0-9]{1,15}")


async def turn_post(request: Request, respond: Responder, caller: Caller, conversation: str) -> None:
    """`POST conversations/{id}/turns/`: a stream of events, one JSON, or 202 in the background.

    A repeated `Idempotency-Key` gives the first request's turn again, its events from the start.
    """
    body = await request.json()
    form = _form(body)
    turn_id = uuid7()
    claim = await _claim(request, caller, turn_id)
    if claim is not None and not claim.is_new and claim.resource_id is not None:
        await _answer_with(request, respond, form, caller, claim.resource_id)
        return
    run: Run | None = None
    admitted = False
    try:
        ask = await run_db(_ask, caller, as_uuid(conversation, "conversation"), turn_id, request.id, body)
        here = runs()
        run = here.start(turn_id, lambda run: take_turn(ask, run), replayable=await here.store.probe())
        await _admitted(run)
        admitted = True
    finally:
        # Whatever refused it; but a turn that still runs keeps its key.
        if claim is not None and not admitted and (run is None or run.log.ended):
            await run_db(_unclaim, caller, request.headers[_KEY])
    await _answer_with(request, respond, form, caller, turn_id)


def _form(body: dict[str, Any]) -> Form:
    """How the request wants its answer. Errors: InvalidInput naming the field."""
    if typed(body, "background", bool, "true or false"):
        return "background"
    return "whole" if typed(body, "stream", bool, "true or false") is False else "stream"


async def _answer_with(
    request: Request, respond: Responder, form: Form, caller: Caller, turn_id: UUID
) -> None:
    """A turn that was admitted, in the form that the request asked for."""
    location = {"location": f"/api/v1/turns/{turn_id}/"}
    match form:
        case "background":
            await respond.json(202, {"id": str(turn_id), "status": "running"}, location)
        case "whole":
            run = runs().get(turn_id)
            await _finished(caller, turn_id)
            respond.timing = run.stages() if run is not None else {}
            await respond.json(200, await run_db(_answer, caller, turn_id), location)
        case "stream":
            run = runs().get(turn_id)
            respond.timing = run.stages() if run is not None else {}
            await frames_send(request, respond, caller, await _events(caller, turn_id, after=0), location)


async def _claim(request: Request, caller: Caller, turn_id: UUID) -> Claim | None:
    """The request's idempotency key, claimed for this turn; None when it has none."""
    key = request.headers.get(_KEY)
    if key is None:
        return None
    fingerprint = fingerprint_of(request.path, await request.body())
    return await run_db(_claimed, caller, key, fingerprint, turn_id)


def _claimed(caller: Caller, key: str, fingerprint: str, turn_id: UUID) -> Claim:
    owner = idempotency_owner(caller)
    claim = idempotency_claim(owner=owner, key=key, fingerprint=fingerprint, resource_id=turn_id)
    if claim.is_new or (claim.resource_id and Turn.objects.filter(id=claim.resource_id).exists()):
        return claim
    if claim.resource_id and _made_before(claim.resource_id, now() - ABANDONED):
        # Its process died before the turn had a row.
        idempotency_release(owner=owner, key=key)
        claim = idempotency_claim(owner=owner, key=key, fingerprint=fingerprint, resource_id=turn_id)
        if claim.is_new:
            return claim
    raise Conflict(
        "The first request with this Idempotency-Key is still being admitted. Send it again in a moment.",
        retry_after=1,
        code="idempotency_in_progress",
    )


def _made_before(turn_id: UUID, instant: datetime) -> bool:
    """Whether an id of ours, which begins with its milliseconds, is older than that."""
    return turn_id.int >> 80 < instant.timestamp() * 1000


def _unclaim(caller: Caller, key: str) -> None:
    idempotency_release(owner=idempotency_owner(caller), key=key)


def _ask(caller: Caller, conversation_id: UUID, turn_id: UUID, request_id: str, body: dict[str, Any]) -> Ask:
    caller.require_scope("chat")
    collections = typed(body, "collections", list, "a list of collection ids")
    return ask_in_conversation(
        caller=caller,
        conversation_id=conversation_id,
        turn_id=turn_id,
        request_id=request_id,
        text=typed(body, "text", str, "the question as text") or "",
        model=typed(body, "model", str, "a model's name"),
        collections=None if collections is None else [as_uuid(c, "collections") for c in collections],
        attachments=ids_of(body, "attachments"),
        parent=parent_of(body),
        max_output_tokens=positive(body, "max_output_tokens"),
    )


def parent_of(body: Mapping[str, Any]) -> UUID | str | None:
    """The turn to go on from: absent, the newest; null, a new root."""
    if "parent" not in body:
        return NEWEST
    return as_uuid(body["parent"], "parent") if body["parent"] is not None else None


def ids_of(body: Mapping[str, Any], field: str) -> list[UUID]:
    """A list of ids that may be absent. Errors: InvalidInput naming the field."""
    return [as_uuid(value, field) for value in typed(body, field, list, "a list of document ids") or []]


def positive(body: dict[str, Any], field: str) -> int | None:
    """A whole number above 0, or None. Errors: InvalidInput naming the field."""
    value: int | None = typed(body, field, int, "a whole number")
    if value is not None and value < 1:
        raise InvalidInput(f"`{field}` must be 1 or more.", detail={"fields": {field: ["must be 1 or more"]}})
    return value


def _answer(caller: Caller, turn_id: UUID) -> dict[str, Any]:
    """The answer as `messages/` shows it."""
    return messages_of(caller, [turn_get(caller, turn_id)])[0]


async def _admitted(run: Run) -> None:
    """Wait until the turn is admitted. Errors: what refused it, so that the answer can carry the right status."""
    async for batch in run.log.follow():
        if batch[0].name == "turn":
            return
        await _refuse(run)
    # Nothing refused it and nothing was stored: the process began to go down in this very moment.
    raise Restarting(retry_after=5)


async def _finished(caller: Caller, turn_id: UUID) -> None:
    """Wait until the turn ended. Errors: what made it fail, where this process knows it."""
    run = runs().get(turn_id)
    async for _ in await _events(caller, turn_id, after=0):
        pass
    if run is not None and run.failure is not None:
        await _refuse(run)


async def _refuse(run: Run) -> None:
    if run.task is not None:
        await asyncio.shield(run.task)
    if run.failure is not None:
        raise run.failure.as_error()


async def turn_events(request: Request, respond: Responder, caller: Caller, turn: str) -> None:
    """`GET turns/{id}/events/`: from the start, or after `Last-Event-ID`."""
    turn_id = as_uuid(turn, "turn")
    if "chat" not in caller.scopes:
        caller.require_scope("read")
    await run_db(turn_get, caller, turn_id)
    await frames_send(request, respond, caller, await _events(caller, turn_id, after=last_event(request)))


async def _events(caller: Caller, turn_id: UUID, *, after: int) -> AsyncGenerator[bytes, None]:
    """Frames of a turn from wherever they are: this process, the broker, or the stored turn."""
    here = runs()
    if (run := here.get(turn_id)) is not None:
        return _as_seen_now(caller, _frames(run.log.follow(after)))
    if await here.store.exists(turn_id):
        return _as_seen_now(caller, _replayed(here.store, caller, turn_id, after))
    return _from_row(caller, turn_id)


async def _as_seen_now(caller: Caller, frames: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """What shows passages asks for the reader's rights again, however long ago the turn searched."""
    async for part in frames:
        yield await run_db(frames_rechecked, caller, part) if shows_passages(part) else part


def last_event(request: Request) -> int:
    """The number of the last event a reader had; 0: none. Errors: InvalidInput."""
    value = request.headers.get("last-event-id") or request.query.get("after") or "0"
    if not _EVENT_NUMBER.fullmatch(value):
        raise InvalidInput("`Last-Event-ID` must be the number of an event.")
    return int(value)


async def _frames(batches: AsyncIterator[list[TurnEvent]]) -> AsyncGenerator[bytes, None]:
    async for batch in batches:
        yield b"".join(event.frame for event in batch)


async def _replayed(
    store: EventStore, caller: Caller, turn_id: UUID, after: int
) -> AsyncGenerator[bytes, None]:
    """Events written by another process; when the broker goes away, the stored turn takes over."""
    try:
        async for batch in store.follow(turn_id, after):
            if batch:
                yield b"".join(batch)
            elif (await run_db(turn_get, caller, turn_id)).state != "running":
                # Its process died: the sweeper wrote the end into the row, not into the events.
                break
        else:
            return
    except (*Unavailable, EventsMissing):
        pass
    async for frame in _from_row(caller, turn_id):
        yield frame


async def _from_row(caller: Caller, turn_id: UUID) -> AsyncGenerator[bytes, None]:
    """The stored turn as events, once it has ended: the text as one `reset` delta."""
    while (turn := await run_db(turn_get, caller, turn_id)).state == "running":
        yield b""
        await asyncio.sleep(1.0)
    yield await run_db(ended_frames, turn)


async def turn_stop_post(request: Request, respond: Responder, caller: Caller, turn: str) -> None:
    """`POST turns/{id}/stop/`: from any process; the text so far is kept and paid for."""
    turn_id = as_uuid(turn, "turn")
    caller.require_scope("chat")
    state = await run_db(turn_stop, caller, turn_id)
    await runs().stop(turn_id)
    await respond.json(202, {"id": str(turn_id), "status": state})

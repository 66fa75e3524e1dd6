"""Turns of a conversation: asked, followed, resumed, stopped; and the pre-count before any of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller
from app.api.stream.http import Request, Responder, as_uuid, typed
from app.chat.asking import NEWEST, ask_in_conversation
from app.chat.event_store import EventStore
from app.chat.events import TurnEvent
from app.chat.replay import ended_frames
from app.chat.runs import Run, runs
from app.chat.selectors import messages_of, turn_get
from app.chat.turn import take_turn
from app.chat.turn_rows import turn_stop
from app.chat.types import Ask
from app.common.db import run_db
from app.common.errors import InvalidInput
from app.common.models import uuid7
from app.common.redis_door import Unavailable

HEARTBEAT_SECONDS = 15.0
_COMMENT = b": still here\n\n"


async def turn_post(request: Request, respond: Responder, caller: Caller, conversation: str) -> None:
    """`POST conversations/{id}/turns/`: a stream of events, one JSON, or 202 in the background."""
    body = await request.json()
    ask = await run_db(_ask, caller, as_uuid(conversation, "conversation"), uuid7(), request.id, body)
    held = runs()
    run = held.start(ask.turn_id, lambda run: take_turn(ask, run), replayable=await held.store.probe())
    location = {"location": f"/api/v1/turns/{ask.turn_id}/"}
    if typed(body, "background", bool, "true or false"):
        await _admitted(run)
        await respond.json(202, {"id": str(ask.turn_id), "status": "running"}, location)
    elif body.get("stream", True) is False:
        await _finished(run)
        await respond.json(200, await run_db(_answer, caller, ask.turn_id), location)
    else:
        await _admitted(run)
        await _send(respond, _frames(run.log.follow()), location)


def _ask(caller: Caller, conversation_id: UUID, turn_id: UUID, request_id: str, body: dict[str, Any]) -> Ask:
    caller.require_scope("chat")
    collections = typed(body, "collections", list, "a list of collection ids")
    parent: UUID | str | None = NEWEST
    if "parent" in body:
        parent = as_uuid(body["parent"], "parent") if body["parent"] is not None else None
    return ask_in_conversation(
        caller=caller,
        conversation_id=conversation_id,
        turn_id=turn_id,
        request_id=request_id,
        text=typed(body, "text", str, "the question as text") or "",
        model=typed(body, "model", str, "a model's name"),
        collections=None if collections is None else [as_uuid(c, "collections") for c in collections],
        parent=parent,
        max_output_tokens=positive(body, "max_output_tokens"),
    )


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


async def _finished(run: Run) -> None:
    """Wait until the turn ended. Errors: what made it fail."""
    async for _ in run.log.follow():
        pass
    if run.failure is not None:
        await _refuse(run)


async def _refuse(run: Run) -> None:
    if run.task is not None:
        await asyncio.shield(run.task)
    if run.failure is not None:
        raise run.failure.as_error()


async def turn_events(request: Request, respond: Responder, caller: Caller, turn: str) -> None:
    """`GET turns/{id}/events/`: from the start, or after `Last-Event-ID`."""
    turn_id = as_uuid(turn, "turn")
    await run_db(turn_get, caller, turn_id)
    after = _last_event(request)
    held = runs()
    run = held.get(turn_id)
    if run is not None:
        frames = _frames(run.log.follow(after))
    elif await held.store.exists(turn_id):
        frames = _replayed(held.store, caller, turn_id, after)
    else:
        frames = _from_row(caller, turn_id)
    await _send(respond, frames)


def _last_event(request: Request) -> int:
    value = request.headers.get("last-event-id") or request.query.get("after") or "0"
    if not value.isdigit():
        raise InvalidInput("`Last-Event-ID` must be the number of an event.")
    return int(value)


async def _frames(batches: AsyncIterator[list[TurnEvent]]) -> AsyncIterator[bytes]:
    async for batch in batches:
        yield b"".join(event.frame for event in batch)


async def _replayed(store: EventStore, caller: Caller, turn_id: UUID, after: int) -> AsyncIterator[bytes]:
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
    except Unavailable:
        pass
    async for frame in _from_row(caller, turn_id):
        yield frame


async def _from_row(caller: Caller, turn_id: UUID) -> AsyncIterator[bytes]:
    """The stored turn as events, once it has ended: the text as one `reset` delta."""
    while (turn := await run_db(turn_get, caller, turn_id)).state == "running":
        yield b""
        await asyncio.sleep(1.0)
    yield await run_db(ended_frames, turn)


async def _send(
    respond: Responder, frames: AsyncIterator[bytes], headers: dict[str, str] | None = None
) -> None:
    """Send frames, with a comment in every quiet quarter of a minute. The turn goes on when the reader leaves."""
    await respond.stream(headers)
    waiting = asyncio.ensure_future(_next(frames))
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=HEARTBEAT_SECONDS)
            if not done:
                await respond.write(_COMMENT)
                continue
            frame = waiting.result()
            if frame is None:
                break
            if frame:
                await respond.write(frame)
            waiting = asyncio.ensure_future(_next(frames))
        await respond.end()
    finally:
        waiting.cancel()


async def _next(frames: AsyncIterator[bytes]) -> bytes | None:
    return await anext(frames, None)


async def turn_stop_post(request: Request, respond: Responder, caller: Caller, turn: str) -> None:
    """`POST turns/{id}/stop/`: from any process; the text so far is kept and paid for."""
    turn_id = as_uuid(turn, "turn")
    state = await run_db(turn_stop, caller, turn_id)
    await runs().stop(turn_id)
    await respond.json(202, {"id": str(turn_id), "status": state})

"""The copy of a turn's events in Valkey, so that any web process can replay them for ten minutes."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import cast
from uuid import UUID

from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

from app.chat.events import END_EVENTS, TurnEvent
from app.common.redis_door import Stored, Unavailable, async_redis

log = logging.getLogger(__name__)

REPLAY_SECONDS = 600
LONGEST_TURN_SECONDS = 4200
_BLOCK_MS = 5000
_FRESH_SECONDS = 2.0
"""How long the broker's last answer stands for the next one."""


class EventsMissing(Exception):
    """The copy has a gap: the broker was away or emptied while the turn ran. The stored turn has the whole text."""


def events_key(turn_id: UUID) -> str:
    """Where the events of a turn are kept."""
    return f"turn:{turn_id}:events"


def _queue_entry(pipe: Pipeline, turn_id: UUID, events: list[TurnEvent]) -> None:
    """Put events of a turn into a pipeline as one entry, numbered as its last event; nothing is sent yet."""
    key, first, last = events_key(turn_id), events[0], events[-1]
    frames = b"".join(event.frame for event in events)
    pipe.execute_command("XADD", key, f"{last.number}-0", "f", frames, "n", last.name)
    if last.name in END_EVENTS:
        pipe.execute_command("EXPIRE", key, REPLAY_SECONDS)
    elif first.number == 1:
        pipe.execute_command("EXPIRE", key, LONGEST_TURN_SECONDS)


def frames_after(entry: bytes, after: int) -> bytes:
    """The frames of an entry numbered above `after`: a reader may have had some of them from another process."""
    if after == 0 or _first_number(entry) > after:
        return entry
    frames = [frame + b"\n\n" for frame in entry.split(b"\n\n") if frame]
    return b"".join(frame for frame in frames if _first_number(frame) > after)


def _first_number(frames: bytes) -> int:
    return int(frames[4 : frames.index(b"\n")])


class EventStore:
    """Writes events of all turns of this process in batches; says whether it can (`available`)."""

    def __init__(self) -> None:
        self.available = True
        self._asked_at = -_FRESH_SECONDS
        self._queue: deque[tuple[UUID, TurnEvent]] = deque()
        self._writer: asyncio.Task[None] | None = None

    def append(self, turn_id: UUID, event: TurnEvent) -> None:
        """Queue an event for writing; never waits, never raises."""
        self._queue.append((turn_id, event))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def drained(self) -> None:
        """Wait until what was queued is written or given up."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def _write(self) -> None:
        while self._queue:
            by_turn: dict[UUID, list[TurnEvent]] = {}
            for _ in range(min(len(self._queue), 500)):
                turn_id, event = self._queue.popleft()
                by_turn.setdefault(turn_id, []).append(event)
            pipe = async_redis().pipeline(transaction=False)
            for turn_id, events in by_turn.items():
                _queue_entry(pipe, turn_id, events)
            try:
                answers = await pipe.execute(raise_on_error=False)
                refused = next((a for a in answers if isinstance(a, ResponseError)), None)
                if refused is not None and self.available:
                    log.warning("The broker refuses events (%s): turns may not be replayed.", refused)
                self.available = refused is None
            except Unavailable:
                if self.available:
                    log.warning(
                        "The broker does not answer: running turns cannot be replayed until it is back."
                    )
                self.available = False
                self._queue.clear()

    async def probe(self) -> bool:
        """Whether events can be stored now; asked at the start of a turn, which says so when they cannot."""
        now = asyncio.get_running_loop().time()
        if not self.available or now - self._asked_at > _FRESH_SECONDS:
            # Said first: of many turns that begin at once, one asks.
            self._asked_at = now
            try:
                self.available = bool(await async_redis().ping())
            except Unavailable:
                self.available = False
        return self.available

    async def exists(self, turn_id: UUID) -> bool:
        """Whether a copy of this turn's events is still there. False also when the broker is away."""
        try:
            return bool(await async_redis().exists(events_key(turn_id)))
        except Unavailable:
            return False

    async def _ended_before(self, turn_id: UUID, last: str) -> bool:
        """Whether the end event is the one a reader has already."""
        newest = cast("Stored", await async_redis().xrevrange(events_key(turn_id), count=1))
        return bool(newest) and newest[0][0].decode() == last and newest[0][1][b"n"].decode() in END_EVENTS

    async def follow(self, turn_id: UUID, after: int = 0) -> AsyncIterator[list[bytes]]:
        """Frames numbered above `after`, in batches, until the end event; an empty batch for each quiet spell.

        Errors: `redis_door.Unavailable` when the broker goes away; EventsMissing rather than a text with a hole.
        """
        last, block = f"{after}-0", 1
        known = after
        while True:
            found = await async_redis().xread({events_key(turn_id): last}, block=block, count=500)
            block = _BLOCK_MS
            if not found:
                if await self._ended_before(turn_id, last):
                    return
                yield []
                continue
            entries = cast("list[tuple[bytes, Stored]]", found)[0][1]
            last = entries[-1][0].decode()
            for number, fields in entries:
                if _first_number(fields[b"f"]) > known + 1:
                    raise EventsMissing
                known = int(number.split(b"-")[0])
            yield [frames_after(fields[b"f"], after) for _, fields in entries]
            if entries[-1][1][b"n"].decode() in END_EVENTS:
                return

"""What a reader of a turn may see: numbered events, kept in memory here and replayable from Valkey elsewhere.

The turn writes to a `TurnLog`. Readers in this process follow the log itself; readers in any other process follow
its copy in Valkey (`EventStore`). An event has one number everywhere, so a reader can change processes in mid-stream.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from uuid import UUID

import orjson

JOIN_SECONDS = 0.02
"""Deltas of a replayable turn are joined for at least this long."""
MAX_DELTA_CHARS = 10_000
"""Keeps an event below 64 KB, each character escaped to six bytes at worst."""
END_EVENTS = frozenset({"done", "error"})


@dataclass(frozen=True)
class TurnEvent:
    """One event. `number` starts at 1 and has no gaps."""

    number: int
    name: str
    data: Mapping[str, Any]

    @cached_property
    def frame(self) -> bytes:
        """The event in text/event-stream form, encoded once for all readers."""
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.name.encode(), orjson.dumps(self.data))


def parsed(frames: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, data) of frames as `TurnEvent.frame` makes them."""
    for frame in frames.split(b"\n\n"):
        if frame:
            _, event, data = frame.split(b"\n", 2)
            yield event[7:].decode(), orjson.loads(data[6:])


class EventSink(Protocol):
    """Where a log copies its events to; must return at once and never raise."""

    def append(self, turn_id: UUID, event: TurnEvent) -> None: ...


class TurnLog:
    """The events of one running turn. Not thread-safe: lives on one event loop."""

    def __init__(self, turn_id: UUID, *, sink: EventSink | None = None) -> None:
        self.turn_id = turn_id
        self.events: list[TurnEvent] = []
        self.text_parts: list[str] = []
        self.reasoning_parts: list[str] = []
        self.ended = False
        self.read_whole = False
        """Whether its only reader waits for the end: text is then joined until something else happens."""
        self._sink = sink
        self._pending: list[tuple[str, str]] = []
        self._timer: asyncio.Handle | None = None
        self._last_flush = 0.0
        self._wake: asyncio.Future[None] | None = None

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self.text_parts)

    @property
    def reasoning(self) -> str:
        """The reasoning so far, kept apart from the answer."""
        return "".join(self.reasoning_parts)

    def emit(self, name: str, data: Mapping[str, Any]) -> None:
        """Append an event, after whatever text is still being joined."""
        self.flush()
        self._append(name, data)

    def delta(self, kind: str, text: str) -> None:
        """Some more `text` or `reasoning`. The first goes out at once; later ones are joined.

        NUL is left out: it is no text, and PostgreSQL would refuse the whole answer for it.
        """
        text = text.replace("\x00", "")
        if not text:
            return
        (self.text_parts if kind == "text" else self.reasoning_parts).append(text)
        self._pending.append((kind, text))
        if self._timer is not None or self.read_whole:
            return
        loop = asyncio.get_running_loop()
        if self._sink is None:
            # Nobody replays this turn: join only what arrived in one read of the server's stream.
            self._timer = loop.call_soon(self.flush)
            return
        wait = self._last_flush + JOIN_SECONDS - loop.time()
        if wait <= 0:
            self.flush()
        else:
            self._timer = loop.call_later(wait, self.flush)

    def flush(self) -> None:
        """Send what is being joined."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        self._last_flush = asyncio.get_running_loop().time()
        run: list[str] = []
        for index, (kind, text) in enumerate(pending):
            run.append(text)
            if index + 1 == len(pending) or pending[index + 1][0] != kind:
                joined = "".join(run)
                run.clear()
                for start in range(0, len(joined), MAX_DELTA_CHARS):
                    self._append("delta", {kind: joined[start : start + MAX_DELTA_CHARS]})

    def _append(self, name: str, data: Mapping[str, Any]) -> None:
        event = TurnEvent(len(self.events) + 1, name, data)
        self.events.append(event)
        self.ended = name in END_EVENTS
        if self._sink is not None:
            self._sink.append(self.turn_id, event)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def follow(self, after: int = 0) -> AsyncIterator[list[TurnEvent]]:
        """Events numbered above `after`, in batches as they come, until the end event has been given."""
        while True:
            batch = self.events[after:]
            if batch:
                after += len(batch)
                yield batch
                continue
            if self.ended:
                return
            if self._wake is None or self._wake.done():
                self._wake = asyncio.get_running_loop().create_future()
            # Shielded: one reader that leaves must not cancel the wake-up of the others.
            await asyncio.shield(self._wake)

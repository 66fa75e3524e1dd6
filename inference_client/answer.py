"""Reads the body of one answer to its true end, within the server's time limits."""

import asyncio

from inference_client.adapters.base import Parser
from inference_client.errors import BrokenStream, InferenceError, MalformedAnswer, TimedOut
from inference_client.servers import Timeouts
from inference_client.transport import Reply, read_all
from inference_client.types import Event, ToolCallDelta
from inference_client.watchdog import Watchdog

MAX_BODY_BYTES = 256 * 1024 * 1024
_TAIL_S = 0.25


class AnswerReader:
    """One answer. `t0` is when the call began, by the loop's clock."""

    def __init__(self, reply: Reply, parser: Parser, timeouts: Timeouts, t0: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._reply = reply
        self._parser = parser
        self._timeouts = timeouts
        self._t0 = t0
        self._stop_at = t0 + timeouts.total
        self._watchdog = Watchdog(self._loop, reply.close)
        self._finished_at: float | None = None
        self._bytes = 0
        self._at_end = False
        self._whole = not _streamed(reply)
        self.first_token_at: float | None = None
        self.chars = 0
        """Characters of text, reasoning and tool arguments so far."""

    async def next(self) -> list[Event]:
        """The events of the next read that brings any; an empty list at the end.

        Raises BrokenStream, MalformedAnswer or TimedOut, and the error the server put into its answer, that
        one only at the end: the usage block may follow it.
        """
        while not self._at_end:
            events = await self._step()
            if events:
                self._count(events)
                return events
        self.close()
        error = self._parser.error
        if error is not None:
            raise error
        if not self._parser.complete:
            raise BrokenStream(code="ended_early")
        return []

    def stop_by(self, seconds: float) -> None:
        """Read no longer than `seconds` from now."""
        self._stop_at = min(self._stop_at, self._loop.time() + seconds)

    def close(self) -> None:
        """Give the connection back, or drop it when the body was not read to its end."""
        self._at_end = True
        self._watchdog.close()
        self._reply.close()

    async def _step(self) -> list[Event]:
        self._arm()
        try:
            data = await (read_all(self._reply, MAX_BODY_BYTES) if self._whole else self._reply.read())
        except BrokenStream as exc:
            self._at_end = True
            self._on_break(exc)
            return []
        finally:
            self._watchdog.disarm()
        parser = self._parser
        if self._whole or not data:
            self._at_end = True
            return parser.whole(data) if self._whole else parser.flush()
        self._bytes += len(data)
        if self._bytes > MAX_BODY_BYTES:
            raise MalformedAnswer(code="answer_too_large")
        events = parser.feed(data)
        if parser.broken:
            self._at_end = True
        elif self._finished_at is None and parser.complete:
            self._finished_at = self._loop.time()
        return events

    def _arm(self) -> None:
        limits = self._timeouts
        if self._finished_at is not None:
            # With end mark and usage there, only the end of the body is missing: do not make anyone wait.
            tail = self._parser.ended and self._parser.usage_is_told
            at, phase = self._finished_at + (min(_TAIL_S, limits.grace) if tail else limits.grace), "grace"
        elif self.first_token_at is not None:
            at, phase = self._loop.time() + limits.idle, "idle"
        else:
            at, phase = self._t0 + limits.first_token, "first_token"
        if self._stop_at < at:
            at, phase = self._stop_at, "total"
        self._watchdog.arm(at, phase)

    def _on_break(self, exc: BrokenStream) -> None:
        """The connection is gone: by our own time limit, by the server after all was said, or too early."""
        phase = self._watchdog.expired
        if phase in ("first_token", "idle", "total") and not self._parser.complete:
            raise self._timed_out(phase) from exc
        if phase is None and not self._parser.complete and self._parser.error is None:
            raise exc

    def _timed_out(self, phase: str) -> InferenceError:
        limits = {
            "first_token": self._timeouts.first_token,
            "idle": self._timeouts.idle,
            "total": self._stop_at - self._t0,
        }
        return TimedOut(phase, round(limits[phase], 3))

    def _count(self, events: list[Event]) -> None:
        if self.first_token_at is None:
            self.first_token_at = self._loop.time()
        chars = 0
        for event in events:
            chars += len(event.arguments if isinstance(event, ToolCallDelta) else event.text)
        self.chars += chars


def _streamed(reply: Reply) -> bool:
    """Whether the server streams, as asked; some answer in one piece all the same."""
    kind = reply.headers.get("content-type", "").lower()
    return not ("text/html" in kind or ("json" in kind and "ndjson" not in kind and "stream" not in kind))

"""The turns that run in this process: started here, found by id, stopped, and drained before the process goes.

A turn is an asyncio task of its own. Requests only follow its log, so it outlives the browser that asked.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self
from uuid import UUID

from app.chat.event_store import EventStore
from app.chat.events import TurnLog
from app.chat.stages import STAGES
from app.chat.types import Failure
from app.chat.watch import Watch
from app.common.errors import Restarting
from app.common.redis_door import Unavailable, async_redis
from app.gate.rates import Stand

log = logging.getLogger(__name__)

STOP_CHANNEL = "tessera:stop"
ACCESS_ENDED = "access_ended"
"""Why a turn is ended whose caller may not go on."""
SHOWN_MS = 0.05
KEEP_SECONDS = 5.0
"""How long an ended turn's log stays in memory, for readers that are just arriving."""


_UNANSWERED = Failure("internal", "This turn ended without an answer.", 500, False)


class Stopped(Exception):
    """The turn was told to end: `stopped` by a person, `interrupted` by the process going down, or ACCESS_ENDED."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StopSignal:
    """Cancels what runs inside `async with signal:` and turns that cancellation into `Stopped`."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._task: asyncio.Task[object] | None = None

    def stop(self, reason: str) -> None:
        """Ask to end. The first reason stands."""
        if self.reason is None:
            self.reason = reason
            if self._task is not None:
                self._task.cancel()

    async def __aenter__(self) -> Self:
        if self.reason is not None:
            raise Stopped(self.reason)
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if (
            self.reason is not None
            and task is not None
            and kind is asyncio.CancelledError
            and task.uncancel() == 0
        ):
            raise Stopped(self.reason) from exc


class Run:
    """One running turn: its log, its stop signal, its task."""

    def __init__(self, turn_log: TurnLog, *, replayable: bool) -> None:
        self.log = turn_log
        self.replayable = replayable
        """Whether other processes can follow it."""
        self.signal = StopSignal()
        self.task: asyncio.Task[None] | None = None
        self.reservation_id: UUID | None = None
        self.kept = False
        """Whether the turn has a row."""
        self.failure: Failure | None = None
        self.rates: Sequence[Stand] | None = None
        """How the caller's rate limits stood when the turn was counted; None before."""
        self.input_tokens: int | None = None
        """Our count of what was sent, once it was sent."""
        self.figures: Callable[[], Mapping[str, float | None]] = dict
        """The turn's clock up to now, once the turn has one."""

    def stages(self) -> dict[str, float]:
        """Milliseconds of each stage that took any, up to now."""
        known = self.figures()
        return {name: ms for name in STAGES if (ms := known.get(f"{name}_ms")) is not None and ms >= SHOWN_MS}

    def seen(self) -> tuple[int | None, int | None]:
        """(input tokens sent, output tokens received so far, roughly), for the sweeper should this process die."""
        characters = len(self.log.text) + len(self.log.reasoning)
        return self.input_tokens, characters // 4 if self.input_tokens is not None else None


class Runs:
    """All runs of this process. One per event loop; made by `runs()`."""

    def __init__(self) -> None:
        self.store = EventStore()
        self.watch = Watch()
        self.draining = False
        self._by_id: dict[UUID, Run] = {}
        self._listener: asyncio.Task[None] | None = None

    def start(self, turn_id: UUID, work: Callable[[Run], Awaitable[None]], *, replayable: bool) -> Run:
        """Start `work(run)` as a task of this process. Errors: Restarting while draining."""
        if self.draining:
            raise Restarting(retry_after=5)
        run = Run(TurnLog(turn_id, sink=self.store if replayable else None), replayable=replayable)
        self._by_id[turn_id] = run
        run.task = asyncio.get_running_loop().create_task(self._guard(run, work), name=f"turn {turn_id}")
        return run

    async def _guard(self, run: Run, work: Callable[[Run], Awaitable[None]]) -> None:
        try:
            await work(run)
        finally:
            if not run.log.ended:
                failure = run.failure = run.failure or _UNANSWERED
                run.log.emit("error", failure.as_event())
            asyncio.get_running_loop().call_later(KEEP_SECONDS, self._by_id.pop, run.log.turn_id, None)

    def get(self, turn_id: UUID) -> Run | None:
        """The run of that turn if this process has it."""
        return self._by_id.get(turn_id)

    async def stop(self, turn_id: UUID, reason: str = "stopped") -> bool:
        """Stop a turn wherever it runs. True when it was told here, False when it was called out to the others."""
        run = self._by_id.get(turn_id)
        if run is not None:
            run.signal.stop(reason)
            return True
        try:
            await async_redis().publish(STOP_CHANNEL, str(turn_id))
        except Unavailable:
            # The row says `stop_requested`; the owner reads it at its next heartbeat.
            log.warning("The broker does not answer: a stop request goes by the database.")
        return False

    async def listen(self) -> None:
        """Begin to hear stop requests of other processes."""
        if self._listener is None:
            self._listener = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            try:
                async with async_redis().pubsub() as channel:
                    await channel.subscribe(STOP_CHANNEL)
                    while True:
                        message = await channel.get_message(ignore_subscribe_messages=True, timeout=5.0)
                        if message is not None:
                            self._heard(message["data"])
            except Unavailable:
                await asyncio.sleep(1.0)

    def _heard(self, data: bytes) -> None:
        """A stop request of another process. What is no id is nobody's turn, and no reason to stop listening."""
        try:
            run = self._by_id.get(UUID(data.decode()))
        except ValueError:
            return
        if run is not None:
            run.signal.stop("stopped")

    async def drain(self, seconds: float) -> None:
        """Refuse new turns, let running ones finish for `seconds`, then end the rest as interrupted."""
        self.draining = True
        deadline = time.monotonic() + seconds
        while (tasks := self._running()) and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait(tasks, timeout=min(left, 1.0))
        for run in list(self._by_id.values()):
            run.signal.stop("interrupted")
        if tasks := self._running():
            await asyncio.wait(tasks, timeout=60)
        await self.store.drained()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener})

    def running(self) -> list[Run]:
        """Runs that have not ended."""
        return [run for run in list(self._by_id.values()) if not run.log.ended]

    def _running(self) -> list[asyncio.Task[None]]:
        return [run.task for run in self._by_id.values() if run.task is not None and not run.task.done()]


_current: dict[asyncio.AbstractEventLoop, Runs] = {}


def runs() -> Runs:
    """The runs of this event loop."""
    loop = asyncio.get_running_loop()
    found = _current.get(loop)
    if found is None:
        for stale in [known for known in _current if known.is_closed()]:
            del _current[stale]
        found = _current[loop] = Runs()
    return found


def runs_here() -> int:
    """How many turns run in this process, from whichever thread that is asked."""
    return sum(len(known.running()) for known in list(_current.values()))


def draining() -> bool:
    """Whether this process is going down (for `/readyz`)."""
    return any(known.draining for known in _current.values())

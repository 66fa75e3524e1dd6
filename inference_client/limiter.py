"""How many calls one deployment gets at once, and who waits. One per deployment and process; asyncio."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from inference_client.errors import Busy
from inference_client.fair_queue import FairQueue, Lane

_SMOOTHING = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A slot that was given."""

    waited_s: float


class Limiter:
    """`slots` calls at once; of them background calls hold all but one, so that a person never waits for a batch."""

    def __init__(self, slots: int) -> None:
        self._slots = max(1, slots)
        self._held: dict[Lane, int] = {"interactive": 0, "background": 0}
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self._typical_s: float | None = None

    @property
    def running(self) -> int:
        """Calls that hold a slot."""
        return sum(self._held.values())

    @property
    def waiting(self) -> int:
        """Calls in line."""
        return len(self._queue)

    def full(self, lane: Lane) -> bool:
        """Whether one more has to wait."""
        return bool(self._queue) or not self._room(lane)

    def resize(self, slots: int) -> None:
        """Give more slots at once, or fewer as calls end."""
        self._slots = max(1, slots)
        self._admit()

    @asynccontextmanager
    async def slot(
        self, *, lane: Lane, team: str, person: str, patience_s: float = 30.0
    ) -> AsyncIterator[Turn]:
        """A slot for the time of the block. Raises Busy when none is free within `patience_s`."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        await self._enter(lane, team, person, patience_s)
        began = loop.time()
        try:
            yield Turn(waited_s=began - asked)
        finally:
            self._held[lane] -= 1
            self._learn(loop.time() - began)
            self._admit()

    def expected_s(self, ahead: int) -> float | None:
        """Seconds until one more gets a slot behind `ahead` others; None before any call has ended."""
        return None if self._typical_s is None else self._typical_s * (ahead + 1) / self._slots

    async def _enter(self, lane: Lane, team: str, person: str, patience_s: float) -> None:
        if not self._queue and self._room(lane):
            self._held[lane] += 1
            return
        ahead = self._queue.ahead(lane=lane, team=team, person=person)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(place, lane=lane, team=team, person=person)
        # The line may hold background calls only, which must not keep a person from a free slot.
        self._admit()
        try:
            async with asyncio.timeout(patience_s):
                await place
        except TimeoutError:
            self._give_back(place, lane)
            raise Busy(ahead + 1, self.expected_s(ahead)) from None
        except asyncio.CancelledError:
            self._give_back(place, lane)
            raise

    def _give_back(self, place: asyncio.Future[None], lane: Lane) -> None:
        """Leave the line, or return the slot that came in the very moment of leaving."""
        if place.done() and not place.cancelled():
            self._held[lane] -= 1
        else:
            self._queue.remove(place)
        self._admit()

    def _room(self, lane: Lane) -> bool:
        if self.running >= self._slots:
            return False
        return lane == "interactive" or self._held["background"] < max(1, self._slots - 1)

    def _admit(self) -> None:
        for lane in ("interactive", "background"):
            while self._room(lane) and (place := self._queue.take(lane)) is not None:
                if not place.done():
                    self._held[lane] += 1
                    place.set_result(None)

    def _learn(self, seconds: float) -> None:
        old = self._typical_s
        self._typical_s = seconds if old is None else old + _SMOOTHING * (seconds - old)

"""How many calls a deployment gets at once. Who waits longer than half a minute is told so and sent away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings

from app.catalog.selectors import Target
from app.common.errors import Busy


class _Slots:
    """A counting lock in order of arrival, that knows how many stand in line."""

    def __init__(self, size: int) -> None:
        self.semaphore = asyncio.Semaphore(size)
        self.size = size
        self.waiting = 0


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[UUID, _Slots]] = WeakKeyDictionary()


def _slots(target: Target) -> _Slots:
    known = _by_loop.setdefault(asyncio.get_running_loop(), {})
    found = known.get(target.deployment_id)
    if found is None or found.size != target.slots:
        found = known[target.deployment_id] = _Slots(target.slots)
    return found


@asynccontextmanager
async def slot(target: Target) -> AsyncIterator[None]:
    """Hold one of the deployment's slots. Errors: Busy with the position after `QUEUE_WAIT_SECONDS`."""
    longest_wait = settings.QUEUE_WAIT_SECONDS
    slots = _slots(target)
    if slots.semaphore.locked():
        slots.waiting += 1
        position = slots.waiting
        try:
            # Not `wait_for`, which may swallow a stop that comes together with the slot.
            async with asyncio.timeout(longest_wait):
                await slots.semaphore.acquire()
        except TimeoutError as exc:
            raise Busy(
                f"`{target.public_name}` is busy: {position} in line, waited {longest_wait:.0f} s. "
                "Nothing was charged; try again in a moment or choose another model.",
                detail={"part": "chat server", "position": position, "slots": slots.size},
                retry_after=longest_wait,
            ) from exc
        finally:
            slots.waiting -= 1
    else:
        await slots.semaphore.acquire()
    try:
        yield
    finally:
        slots.semaphore.release()

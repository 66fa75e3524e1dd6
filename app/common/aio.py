"""Small helpers for async code: to finish what it began, and to keep one of a thing for each event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from app.common.errors import PartFailed

T = TypeVar("T")

PATIENCE = (0.2, 0.5, 1, 2, 4, 8, 15, 15, 15, 15, 15, 15)
"""Seconds between tries to write what has already happened: about two minutes of an absent database."""


async def patiently(write: Callable[[], Awaitable[T]], *, waiting: Callable[[], None] = lambda: None) -> T:
    """Await `write()`, again while a part is away; `waiting` is called before each wait.

    Errors: PartFailed of the last try.
    """
    for wait in PATIENCE:
        try:
            return await write()
        except PartFailed:
            waiting()
        await asyncio.sleep(wait)
    return await write()


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end even when this task is cancelled meanwhile; the cancellation is raised afterwards.

    For steps whose effect must be known before anything else happens, such as a hold on somebody's money.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            raise error from None
        raise


class PerLoop(Generic[T]):
    """One of a thing for each event loop, made when it is first asked for; it goes with its loop.

    Sockets, futures and tasks belong to the loop they were made in: `client = PerLoop(Client)`, then `client()`.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def __call__(self) -> T:
        """This loop's."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            found = self._made[loop] = self._make()
        return found

    def pop(self) -> T | None:
        """This loop's, which is forgotten; None when there was none."""
        return self._made.pop(asyncio.get_running_loop(), None)

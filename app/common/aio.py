"""Small helpers for async code that has to finish what it began."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

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

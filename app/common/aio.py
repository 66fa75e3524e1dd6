"""Small helpers for async code that has to finish what it began."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


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

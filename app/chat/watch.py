"""Ends what runs for callers who may not go on: a revoked key, a suspended person, somebody who left the paying team.

Each web process asks twice a second, in one visit to the database for all its turns and readers, so nobody who
changes a right has to know who runs what, and it bites while the broker is away. Where requests come in, keys are
remembered for half a second.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error

from app.accounts.standing import Standing, fallen
from app.common.db import run_db
from app.common.errors import PartFailed

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5


class Watch:
    """Who is watched in this process, and what is done when they fall."""

    def __init__(self) -> None:
        self._ends: dict[object, tuple[Standing, Callable[[], None]]] = {}

    @contextmanager
    def over(self, standing: Standing, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` when this caller may not go on, as long as the block runs."""
        mark = object()
        self._ends[mark] = (standing, end)
        try:
            yield
        finally:
            del self._ends[mark]

    async def look(self) -> None:
        """One look at all of them."""
        watched = list(self._ends.items())
        if not watched:
            return
        gone = await run_db(fallen, {standing for _, (standing, _) in watched})
        for mark, (standing, end) in watched:
            if standing in gone and mark in self._ends:
                end()

    async def keep(self) -> None:
        """Look until cancelled. What cannot be asked now is asked again in half a second."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except PartFailed:
                log.warning("The database does not answer: nobody can be asked whether callers may go on.")
            except Error:
                log.exception("Asking whether callers may go on failed; it is tried again.")

"""Settlements of one process, in groups: what ends while a commit is under way shares the next one.

A settlement is durable, so each costs one write to the disk. Alone it goes at once and waits for nobody; under load
a group of up to `GROUP` becomes one statement and one commit.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError, IntegrityError, InterfaceError, OperationalError

from app.billing import services as billing
from app.billing.errors import ReservationMissing
from app.billing.types import Settled, Settlement
from app.common.aio import PerLoop
from app.common.db import run_db

GROUP = 50


@dataclass(frozen=True, slots=True)
class Booking:
    """One settlement, and what is written down with it. Both are safe to repeat."""

    settlement: Settlement
    then: Callable[[Settled], None] | None = None


class Settler:
    """The settlements of one event loop."""

    def __init__(self) -> None:
        self._group: list[Booking] = []
        self._work: asyncio.Task[list[Settled | Exception]] | None = None

    async def settle(self, booking: Booking) -> Settled:
        """Book it, durably. Errors: PartFailed when the database is away; what it refuses for good, by itself."""
        if not self._group or len(self._group) == GROUP:
            self._group = []
            self._work = asyncio.ensure_future(self._book(self._group, self._work))
        group, work = self._group, self._work
        assert work is not None
        group.append(booking)
        place = len(group) - 1
        # Shielded: one that is cancelled must not take the others of its group with it.
        result = (await asyncio.shield(work))[place]
        if isinstance(result, Exception):
            raise result
        return result

    async def _book(
        self, group: list[Booking], before: "asyncio.Task[Any] | None"
    ) -> list[Settled | Exception]:
        if before is not None and not before.done():
            await asyncio.wait({before})
        if self._group is group:
            self._group = []
        return await run_db(_book, group)


def _book(bookings: Sequence[Booking]) -> list[Settled | Exception]:
    """Settle a group in one statement; when the database refuses one of them, each by itself."""
    results: list[Settled | Exception] = []
    try:
        results += billing.reservations_settle(settlements=[booking.settlement for booking in bookings])
    except (DataError, IntegrityError, ReservationMissing) as exc:
        results += [exc] if len(bookings) == 1 else [_book([booking])[0] for booking in bookings]
        return results
    for place, booking in enumerate(bookings):
        settled = results[place]
        if booking.then is None or isinstance(settled, Exception):
            continue
        try:
            booking.then(settled)
        except (OperationalError, InterfaceError):
            # The database went away: all of it is tried again.
            raise
        except Exception as exc:  # noqa: BLE001 - a mistake in what one caller writes down is that caller's alone
            results[place] = exc
    return results


settler = PerLoop(Settler)

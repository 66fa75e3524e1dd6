"""A time limit that costs almost nothing to move.

A stream has a deadline for every read. Starting and cancelling a timer each time costs more than reading the
chunk; here a deadline is only noted, and one timer looks at the note when it rings.
"""

import asyncio
from collections.abc import Callable


class Watchdog:
    """Calls `on_expiry` once, when an armed deadline passes. Deadlines are times of the loop's clock."""

    __slots__ = ("_deadline", "_loop", "_on_expiry", "_phase", "_timer", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_expiry: Callable[[], None]) -> None:
        self._loop = loop
        self._on_expiry = on_expiry
        self._deadline: float | None = None
        self._phase = ""
        self._timer: asyncio.TimerHandle | None = None
        self.expired: str | None = None
        """The phase whose deadline passed."""

    def arm(self, deadline: float, phase: str) -> None:
        """Expect something by `deadline`, which replaces an earlier one."""
        self._deadline = deadline
        self._phase = phase
        if self._timer is None or deadline < self._timer.when():
            self._restart(deadline)

    def disarm(self) -> None:
        """What was expected came; the timer is left to ring in vain."""
        self._deadline = None

    def close(self) -> None:
        """Stop the timer for good."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _restart(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._deadline is None or self.expired:
            return
        if self._deadline > self._loop.time():
            self._restart(self._deadline)
        else:
            self.expired = self._phase
            self._on_expiry()

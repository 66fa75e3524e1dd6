"""Leaves a failing server alone for a while. Pure: the caller brings the time, in seconds of any steady clock.

closed     calls pass; some failures in a row open it
open       no call passes until a pause is over; each time it opens again the pause doubles
half-open  one call passes to try; its outcome closes or opens it
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inference_client.errors import BrokenStream, InferenceError, ServerFault, TimedOut, Unreachable

State: TypeAlias = Literal["closed", "open", "half-open"]
_COUNTS = (Unreachable, TimedOut, BrokenStream, ServerFault)
"""Failures of the server itself. One that is full or still loading is healthy, and a bad request is not its fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """When to open, and for how long."""

    failures: int = 5
    """In a row."""
    pause_s: float = 5.0
    longest_s: float = 120.0
    trial_s: float = 60.0
    """A trial call that never reports its outcome is forgotten after this."""


class Breaker:
    """The state of one server."""

    def __init__(self, limits: BreakerLimits | None = None) -> None:
        self._limits = limits or BreakerLimits()
        self._failures = 0
        self._openings = 0
        self._until = 0.0
        self._trial_until: float | None = None

    def state(self, now: float) -> State:
        """The state at `now`."""
        if not self._openings:
            return "closed"
        return "open" if now < self._until else "half-open"

    def admits(self, now: float) -> bool:
        """Whether a call may pass. Half-open, the first to ask is let through and the others are not."""
        state = self.state(now)
        if state != "half-open":
            return state == "closed"
        if self._trial_until is not None and now < self._trial_until:
            return False
        self._trial_until = now + self._limits.trial_s
        return True

    def wait_s(self, now: float) -> float:
        """Seconds until the pause is over; 0 when there is none."""
        return self._until - now if self.state(now) == "open" else 0.0

    def undecided(self) -> None:
        """A call ended without telling anything, such as one that its reader left: another may try."""
        self._trial_until = None

    def succeeded(self) -> None:
        """A call went well."""
        self._failures = 0
        self._openings = 0
        self._trial_until = None

    def failed(self, error: InferenceError, now: float) -> None:
        """A call ended with `error`; only failures of the server itself count."""
        if not isinstance(error, _COUNTS):
            self.succeeded()
            return
        self._failures += 1
        if self.state(now) == "half-open" or (not self._openings and self._failures >= self._limits.failures):
            pause = self._limits.pause_s * 2**self._openings
            self._openings += 1
            self._until = now + min(pause, self._limits.longest_s)
            self._trial_until = None

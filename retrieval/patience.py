"""Waiting out what says of itself that trying again may help: a server that restarts, a store that is away.

for patience in tries():
    with patience:
        return work()
    sleep(patience.seconds)
return work()
"""

from collections.abc import Iterator
from typing import Self

_LONGEST = 60.0
PAUSES = (1.0, 4.0, 10.0, 20.0, *(_LONGEST,) * 8)
"""Seconds between tries, nine minutes together: a large model is loaded again by then. The one worker that waits keeps
a thousand documents behind it from failing, which would need the same server."""


class Patience:
    """Swallows an error that is `retryable`; the classes of the tiers above are not ours to name.

    The long pauses are for what says when to come again (`retry_after`): else it may be a wrong key, or a server that
    takes money for nonsense.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """To wait before the next try; what the server asked for, within bounds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        when = getattr(error, "retry_after", None)
        if not isinstance(error, Exception) or not getattr(error, "retryable", False):
            return False
        if when is None and self.seconds >= _LONGEST:
            return False
        self.seconds = min(max(self.seconds, float(when or 0.0)), _LONGEST)
        return True


def tries() -> Iterator[Patience]:
    """One for each try but the last, which nobody is patient with."""
    return map(Patience, PAUSES)

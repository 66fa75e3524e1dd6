"""`down`: asks the supervisor of a data directory to stop, and clears up after one that was killed."""

import signal

from app.embedded.errors import EmbeddedError
from app.embedded.leftovers import leftovers_find, leftovers_stop, signal_send
from app.embedded.lock import holder_pid, lock_take, released
from app.embedded.paths import Layout
from app.embedded.supervisor import Say

# Beyond the drain time: workers, then the database's last writes.
_MARGIN = 150.0


def down(layout: Layout, *, drain_seconds: int, now: bool, say: Say) -> None:
    """Stop the stack and return when nothing of it runs.

    Args:
        now: answers under way are not waited for.
    Raises:
        EmbeddedError: it does not stop in time.
    """
    pid = holder_pid(layout)
    if pid is None:
        _clear(layout, say)
        return
    signal_send(pid, signal.SIGTERM)
    if now and not released(layout, 1):
        signal_send(pid, signal.SIGTERM)
    if not released(layout, drain_seconds + _MARGIN):
        raise EmbeddedError(
            f"Process {pid} does not stop; its log is {layout.log('up')}. End it with `kill -9 {pid}`."
        )
    say("stopped")


def _clear(layout: Layout, say: Say) -> None:
    lock = lock_take(layout)
    try:
        found = leftovers_find(layout)
        leftovers_stop(layout, say)
        say("stopped" if found else f"nothing runs in {layout.data}")
    finally:
        lock.file.close()

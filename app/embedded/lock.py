"""One supervisor per data directory."""

import fcntl
import os
import time
from dataclasses import dataclass
from typing import IO

from app.embedded.errors import AlreadyRunning
from app.embedded.paths import Layout


@dataclass(slots=True)
class Lock:
    """Held while the file is open; the kernel lets go when the process ends, however it ends."""

    file: IO[str]


def lock_take(layout: Layout) -> Lock:
    """The lock of this data directory. Raises AlreadyRunning, naming the process that holds it."""
    file = layout.lock.open("a+")
    # Somebody who only asks whether the lock is held has it for a moment too.
    if not any(_try(file) for _ in range(5)):
        file.close()
        raise AlreadyRunning(
            f"Tessera already runs in {layout.data} (process {holder_pid(layout) or 'unknown'}). "
            "Stop it with `python manage.py down`, or start another with --data DIR."
        )
    layout.lock.chmod(0o600)
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return Lock(file)


def _try(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.05)
        return False
    return True


def holder_pid(layout: Layout) -> int | None:
    """The process that holds the lock; None when nobody does, whatever number is in the file."""
    try:
        with layout.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read().strip() or 0) or None
    except (FileNotFoundError, ValueError):
        return None
    return None


def released(layout: Layout, seconds: float) -> bool:
    """Wait until nobody holds the lock; False when the time is over first."""
    deadline = time.monotonic() + seconds
    while holder_pid(layout) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True

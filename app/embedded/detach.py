"""Leaves `up` running in a process of its own once it is ready."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from app.embedded.children import log_open


def detach(argv: Sequence[str], *, say: Callable[[str], None]) -> int:
    """Run the same command in its own session, pass on its lines until it is ready, and leave it.

    Returns:
        0 once it said `ready`; otherwise the code it ended with.
    """
    command = [sys.executable, *(word for word in argv if word != "--detach"), "--reports-to-parent"]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        say(line.rstrip("\n"))
        if line.startswith("ready "):
            return 0
    return child.wait() or 1


def detached_from(log: Path) -> None:
    """From now on this process writes to `log` instead of the terminal it was started from."""
    descriptor = log_open(log)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)

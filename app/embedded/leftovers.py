"""Finds what outlived a killed supervisor, without trusting a process id.

A process is ours when it belongs to a session that we started in this boot and has this data directory in its
environment or works in it. The kernel gives a session's number to nobody else while a member of it lives.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from app.embedded.children import started_ticks, stat_fields
from app.embedded.paths import Layout, write_private

MARK = "TESSERA_DATA"
_PATIENCE = 10.0


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def children_record(layout: Layout, sessions: Iterable[int]) -> None:
    """Write down the sessions of the running children."""
    write_private(layout.children, json.dumps({"boot": _boot(), "sessions": sorted(sessions)}))


def _recorded(layout: Layout) -> set[int]:
    try:
        stored = json.loads(layout.children.read_text())
        return set(stored["sessions"]) if stored["boot"] == _boot() else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _is_marked(pid: int, data: Path) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        # Valkey writes its title over its environment.
        if (process / "cwd").readlink().is_relative_to(data):
            return True
        environment = (process / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={data}".encode() in environment.split(b"\0")


def leftovers_find(layout: Layout) -> list[int]:
    """Process ids of our own children that nobody supervises."""
    sessions = _recorded(layout)
    if not sessions:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        fields = stat_fields(int(entry.name))
        if (
            fields
            and fields[0] != "Z"
            and int(fields[3]) in sessions
            and _is_marked(int(entry.name), layout.data)
        ):
            found.append(int(entry.name))
    return found


def signal_send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may be gone by now."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def gone(pids: Iterable[int], seconds: float) -> bool:
    """Wait until none of the processes lives; False when the time is over first."""
    born = {pid: started_ticks(pid) for pid in pids}
    deadline = time.monotonic() + seconds
    while any(ticks is not None and _alive(pid, ticks) for pid, ticks in born.items()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _alive(pid: int, ticks: int) -> bool:
    fields = stat_fields(pid)
    if fields is None or int(fields[19]) != ticks:
        return False
    # The first thread of a killed process may be over while another still holds its files, and so its port.
    return fields[0] != "Z" or int(fields[17]) > 1


def leftovers_stop(layout: Layout, say: Callable[[str], None]) -> None:
    """End them: politely (PostgreSQL: at once but cleanly), then by force after ten seconds."""
    pids = leftovers_find(layout)
    if pids:
        say(f"stopping {len(pids)} processes left over from a supervisor that was killed")
        for pid in pids:
            signal_send(pid, signal.SIGTERM)
        if not gone(pids, _PATIENCE):
            for pid in leftovers_find(layout):
                signal_send(pid, signal.SIGKILL)
            gone(pids, _PATIENCE)
    layout.children.unlink(missing_ok=True)

"""Child processes: each in its own session, each told by the kernel when its parent dies."""

import ctypes
import gzip
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Looked up before any fork: a child may not import or allocate much between fork and exec.
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_LOG_LIMIT = 10 * 1024 * 1024
_LOG_KEPT = timedelta(days=30)
_LOG_PARTS = 60
"""Packed parts at most, so that a program that complains without end fills no disk: twice one a day."""


@dataclass(frozen=True, slots=True)
class Program:
    """How to start one part of the stack, and how to know that it works."""

    name: str
    argv: tuple[str, ...]
    ready: Callable[[], bool]
    """Asks the part itself; False while it does not answer yet."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the inherited environment."""
    stdin: str = ""
    """Configuration with secrets: in no command line, environment or file."""
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 15
    before: Callable[[], None] | None = None
    """Runs before each start, also after a crash."""
    folder: Path | None = None


def started_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since boot: with the pid an identity. None: no such process."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: [0] state, [1] parent, [3] session, [17] threads, [19] start."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def log_open(path: Path) -> int:
    """A descriptor to append to, mode 0600."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    # Whether there is room to put the old one aside says nothing of the program.
    with suppress(OSError):
        log_trim(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def log_trim(path: Path, *, at: datetime | None = None) -> None:
    """Put a log's content aside each day and at 10 MB, while its program writes on.

    Parts older than 30 days go, and those beyond the newest `_LOG_PARTS`. Errors: OSError, nothing being lost.
    """
    moment = at or datetime.now(UTC)
    since = path.with_suffix(".since")
    begun, today = since.read_text() if since.exists() else "", f"{moment:%Y-%m-%d}"
    size = path.stat().st_size if path.exists() else 0
    if size > _LOG_LIMIT or (size and begun and begun != today):
        _put_aside(path, path.with_name(f"{path.name}.{moment:%Y%m%d-%H%M%S}.gz"))
    if size and begun != today:
        since.write_text(today)
    parts = sorted(
        ((part.stat().st_mtime, part) for part in path.parent.glob(f"{path.name}.*")), reverse=True
    )
    for place, (written, part) in enumerate(parts):
        if place >= _LOG_PARTS or written < (moment - _LOG_KEPT).timestamp():
            part.unlink()


def _put_aside(path: Path, part: Path) -> None:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as raw,
            path.open("rb") as source,
            gzip.GzipFile(fileobj=raw, mode="wb") as packed,
        ):
            shutil.copyfileobj(source, packed)
    except OSError:
        # Half of it would take the room that is missing; the whole is still where it was.
        part.unlink(missing_ok=True)
        raise
    os.truncate(path, 0)


def _die_with_parent(parent: int, number: int) -> Callable[[], None]:
    def in_child() -> None:
        _prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return in_child


def _account(user: str | None) -> dict[str, object]:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def spawn(
    program: Program, *, log: Path, environment: Mapping[str, str], output: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start the program. Call from the main thread: the kernel's signal follows the thread that forked.

    Args:
        log: takes standard error, and standard output too unless `output` is given.
    Raises:
        OSError: the program cannot be executed, or the disk is full.
    """
    if program.before:
        program.before()
    errors = log_open(log)
    answers = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if output else errors
    # An unnamed file and not a pipe: nothing to write to a child that is slow to read or already dead.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(program.stdin.encode())
        stdin.seek(0)
        try:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                program.argv,
                stdin=stdin,
                stdout=answers,
                stderr=errors,
                env={**environment, **program.environment},
                cwd=program.folder,
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid(), program.death_signal),  # noqa: PLW1509
                **_account(program.user),  # type: ignore[call-overload]
            )
            return process
        finally:
            for descriptor in {errors, answers}:
                os.close(descriptor)


def collect(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code once the process has ended, else None. Whatever is left of its group is killed first.

    Only until it is collected does a dead process keep its number from being given to somebody else.
    """
    if process.returncode is None:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        _kill_group(process.pid)
    return process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything in its group, and collect it."""
    if process.returncode is None:
        _kill_group(process.pid)
        process.wait()


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

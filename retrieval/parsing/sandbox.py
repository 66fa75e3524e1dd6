"""Hands files to reading processes and waits for them, no longer than allowed.

Starting an interpreter with all parsers takes a quarter of a second, so a process that did its work well is kept for
the next file; one that failed in any way is not.
"""

import atexit
import json
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from retrieval.errors import ReadError
from retrieval.parsing import wire
from retrieval.parsing.blocks import Reading
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source

PULSE_SECONDS = 2.0
FILES_EACH = 100
"""After so many files a process is replaced, whatever a parser may have leaked."""
PAGES_GIVEN_UP = 3
"""A file that stops the reader at more pages than this is given up as a whole."""
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Several readers run at once; numeric libraries that each take every core slow one another down."""
_ROOT = Path(__file__).resolve().parents[2]


class _Reader:
    """One reading process."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.files = 0
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        # The environment is not handed on: it may hold keys, and a parser needs none of it.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "retrieval.parsing.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            cwd=_ROOT,
            env={"PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", **_THREADS},
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def answer(
        self, source: Source, heartbeat: Callable[[int, int], None] | None = None, *, picture: int = 0
    ) -> bytes:
        """A Reading as `wire` has it, or the picture of a page.

        Errors: what `heartbeat` raises, _Died when the process ended without an answer.
        """
        self.files += 1
        with tempfile.NamedTemporaryFile() as answer, tempfile.NamedTemporaryFile() as place:
            request = {
                "path": str(source.path.resolve()),
                "name": source.name,
                "password": source.password,
                "limits": asdict(source.limits),
                "answer": answer.name,
                "place": place.name,
                "skip": sorted(source.skip),
                "picture": picture,
            }
            try:
                whole = self._send(json.dumps(request)) and self._wait(source, heartbeat)
            except _Late:
                raise _Died(None, "", page=int(place.read() or 0)) from None
            if not whole:
                raise _Died(self._process.wait(), self._last_words(), page=int(place.read() or 0))
            return answer.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    # A request the dead process never took is still in the buffer.
                    continue

    def _send(self, request: str) -> bool:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _wait(self, source: Source, heartbeat: Callable[[int, int], None] | None) -> bool:
        """True when the answer is whole, False when the process ended before."""
        pipe = self._process.stdout
        assert pipe is not None
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                self._wait_line(selector, source, heartbeat)
                line = pipe.readline()
                if not line.startswith(b"page "):
                    return line == b"done\n"
                # A page more: the time starts anew.
                if heartbeat is not None:
                    heartbeat(*map(int, line.split()[1:]))

    def _wait_line(
        self, selector: selectors.BaseSelector, source: Source, heartbeat: Callable[[int, int], None] | None
    ) -> None:
        deadline = time.monotonic() + source.limits.wall_seconds
        while not selector.select(timeout=PULSE_SECONDS):
            if heartbeat is not None:
                heartbeat(0, 0)
            if time.monotonic() > deadline:
                raise _Late

    def _last_words(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]


class _Late(Exception):
    """The reading process took longer than allowed."""


class _Died(Exception):
    """The reading process ended without an answer, or has to be ended because it gives none."""

    def __init__(self, status: int | None, last_words: str, *, page: int) -> None:
        self.status = status
        """None: it ran out of time."""
        self.last_words = last_words
        self.page = page
        """The page it was at; 0 where there are none."""
        super().__init__(status)


_idle: list[_Reader] = []
_lock = threading.Lock()


def read_confined(source: Source, *, heartbeat: Callable[[int, int], None] | None = None) -> Reading:
    """Read a file in another process. `heartbeat` is called as in `parsing.read`; what it raises stops the reading.

    A page at which it stops twice is left out. Errors: ReadError, also when the process crashed or ran out of time
    (reasons `crashed`, `timeout`).
    """
    stops: Counter[int] = Counter()
    while True:
        reader = _take(source.limits)
        fresh = reader.files == 0
        keep = False
        try:
            reading = wire.load(reader.answer(source, heartbeat))
            keep = True
            return reading
        except ReadError:
            keep = reader.alive
            raise
        except _Died as death:
            # A process kept from an earlier file may have ended for reasons of its own: a new one decides.
            if fresh:
                stops[death.page] += 1
                if not death.page or len(stops) > PAGES_GIVEN_UP:
                    raise _crashed(source, death) from death
                given_up = frozenset(page for page, times in stops.items() if times > 1)
                source = replace(source, skip=given_up)
        finally:
            _put_back(reader, keep=keep)


def picture_confined(source: Source, number: int) -> bytes:
    """WebP of one page, drawn in another process. Errors: ReadError, as `read_confined`."""
    while True:
        reader = _take(source.limits)
        fresh = reader.files == 0
        keep = False
        try:
            shown = wire.picture_load(reader.answer(source, picture=number))
            keep = True
            return shown
        except ReadError:
            keep = reader.alive
            raise
        except _Died as death:
            if fresh:
                raise _crashed(source, death) from death
        finally:
            _put_back(reader, keep=keep)


def _take(limits: Limits) -> _Reader:
    with _lock:
        for reader in list(_idle):
            if reader.limits == limits or not reader.alive:
                _idle.remove(reader)
                if reader.alive:
                    return reader
                reader.close()
    return _Reader(limits)


def _put_back(reader: _Reader, *, keep: bool) -> None:
    if keep and reader.files < FILES_EACH:
        with _lock:
            _idle.append(reader)
    else:
        reader.close()


@atexit.register
def _close_all() -> None:
    while _idle:
        _idle.pop().close()


def _crashed(source: Source, death: _Died) -> ReadError:
    if death.status is None:
        return _out_of_time(source, source.limits.wall_seconds)
    if death.status == -signal.SIGXCPU:
        return _out_of_time(source, source.limits.cpu_seconds)
    how = (
        f"signal {-death.status}" if death.status < 0 else death.last_words[:200] or f"status {death.status}"
    )
    return ReadError(
        f"The reader stopped at “{source.name}” ({how}). The file is probably damaged: open it in the program that "
        "made it, save it again and upload that.",
        reason="crashed",
    )


def _out_of_time(source: Source, seconds: int) -> ReadError:
    return ReadError(
        f"Reading “{source.name}” took longer than {seconds} seconds and was stopped. Split it, or export it anew.",
        reason="timeout",
    )

"""Starts the reading process and waits for it, no longer than allowed."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

from retrieval.errors import ReadError
from retrieval.parsing import wire
from retrieval.parsing.blocks import Reading
from retrieval.parsing.source import Source

_ROOT = Path(__file__).resolve().parents[2]
_PULSE_SECONDS = 2.0


def read_confined(source: Source, *, heartbeat: Callable[[], None] | None = None) -> Reading:
    """Read a file in a process of its own. `heartbeat` is called every two seconds; what it raises stops the reading.

    Errors: ReadError, also when the process crashed or ran out of time (reasons `crashed`, `timeout`).
    """
    request = {
        "path": str(source.path),
        "name": source.name,
        "password": source.password,
        "limits": asdict(source.limits),
    }
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
        # The environment is not handed on: it may hold keys, and a parser needs none of it.
        process = subprocess.Popen(
            [sys.executable, "-m", "retrieval.parsing.worker"],
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=complaints,
            cwd=_ROOT,
            env={"PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        try:
            _send(process, json.dumps(request))
            status = _wait(process, source, heartbeat)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return _answer(source, status, answer, complaints)


def _send(process: subprocess.Popen[bytes], request: str) -> None:
    stdin = process.stdin
    if stdin is None:
        return
    try:
        stdin.write(request.encode())
        stdin.close()
    except BrokenPipeError:
        # It died before it read the request; its exit status says why.
        return


def _wait(process: subprocess.Popen[bytes], source: Source, heartbeat: Callable[[], None] | None) -> int:
    deadline = time.monotonic() + source.limits.wall_seconds
    while True:
        try:
            return process.wait(timeout=_PULSE_SECONDS)
        except subprocess.TimeoutExpired:
            if heartbeat is not None:
                heartbeat()
            if time.monotonic() > deadline:
                raise _out_of_time(source, source.limits.wall_seconds) from None


def _answer(source: Source, status: int, answer: IO[bytes], complaints: IO[bytes]) -> Reading:
    answer.seek(0)
    complaints.seek(0)
    if status == -signal.SIGXCPU:
        raise _out_of_time(source, source.limits.cpu_seconds)
    try:
        return wire.load(answer.read().decode())
    except ValueError as exc:
        last = complaints.read()[-2000:].decode(errors="replace").strip().split("\n")[-1]
        how = f"signal {-status}" if status < 0 else (last or f"status {status}")
        raise ReadError(
            f"The reader stopped at “{source.name}” ({how[:200]}). The file is probably damaged: open it in the "
            "program that made it, save it again and upload that.",
            reason="crashed",
        ) from exc


def _out_of_time(source: Source, seconds: int) -> ReadError:
    return ReadError(
        f"Reading “{source.name}” took longer than {seconds} seconds and was stopped. Split it, or export it anew.",
        reason="timeout",
    )

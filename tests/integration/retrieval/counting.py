"""An HTTP proxy in front of the real embedding server that notes which texts were asked for, and when."""

import http.client
import json
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from django.conf import settings


@dataclass
class Asked:
    """One request that reached the embedding server."""

    texts: tuple[str, ...]
    began: float
    ended: float | None = None
    """When its answer had been handed over; None when the caller was gone by then."""


class CountingProxy:
    """Holds each request for a moment before it goes on, so that there is something to interrupt."""

    def __init__(self, hold_seconds: float) -> None:
        self.hold_seconds = hold_seconds
        self.requests: list[Asked] = []
        self.url = ""

    def counts(self) -> Counter[str]:
        """How often each text was sent on to the embedding server."""
        return Counter(text for asked in self.requests for text in asked.texts)

    @contextmanager
    def running(self) -> Iterator["CountingProxy"]:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: CountingProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.owner.hold_seconds)
        if self._gone():
            self.close_connection = True
            return
        asked = Asked(tuple(json.loads(body)["input"]), time.monotonic())
        self.owner.requests.append(asked)
        status, answer = _forward(self.path, body)
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            self.close_connection = True
            return
        asked.ended = time.monotonic()

    def _gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Quiet."""


def _forward(path: str, body: bytes) -> tuple[int, bytes]:
    server = urlsplit(settings.EMBEDDING_URL)
    connection = http.client.HTTPConnection(str(server.hostname), server.port, timeout=60)
    try:
        headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {settings.EMBEDDING_API_KEY}",
        }
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()

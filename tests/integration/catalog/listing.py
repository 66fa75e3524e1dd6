"""Servers that list models the way Ollama, vLLM and providers do; they answer no chat."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens here."""
PROVIDER = "http://203.0.113.7:9/v1"
"""Not of this machine, nor of a private network; no test can reach it."""


def models(*names: str, **fields: object) -> dict[str, Any]:
    """A list as `/v1/models` gives it."""
    return {"object": "list", "data": [{"id": name, **fields} for name in names]}


def ollama(*names: str, loaded: Mapping[str, int] = {}) -> dict[str, Any]:
    """Ollama's routes; `loaded` has the windows of the models in memory."""
    rows = [{"name": name, "model": name, "context_length": window} for name, window in loaded.items()]
    return {
        "/v1/models": models(*names, owned_by="library"),
        "/api/version": {"version": "0.9.0"},
        "/api/ps": {"models": rows},
    }


@contextmanager
def serving(routes: Mapping[str, Any], *, key: str = "") -> Iterator[str]:
    """The address (with /v1) of a server that answers these paths with JSON; with `key` only to who sends it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refused = key and self.headers["Authorization"] != f"Bearer {key}"
            status = 401 if refused else 200 if self.path in routes else 404
            body = json.dumps(routes[self.path] if status == 200 else {"error": {"message": "no"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()

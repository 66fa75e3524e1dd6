"""Looking for servers, over real sockets."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.embedded.discovery import servers_find
from tests.integration.embedded.conftest import Server

OLLAMA = {
    "/v1/models": {
        "object": "list",
        "data": [{"id": "qwen3:8b", "owned_by": "library"}, {"id": "nomic-embed-text"}],
    },
    "/api/version": {"version": "0.20.1"},
}
VLLM = {"/v1/models": {"data": [{"id": "meta/Llama", "owned_by": "vllm", "max_model_len": 8192}]}}
ONLY_EMBEDDINGS = {"/v1/models": {"data": [{"id": "bge-m3"}, {"id": "multilingual-e5-small"}]}}


@pytest.fixture
def serve() -> Iterator[object]:
    servers: list[ThreadingHTTPServer] = []

    def start(answers: dict[str, object]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(answers.get(self.path, {})).encode()
                self.send_response(200 if self.path in answers else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answers", "kind", "models"),
    [(OLLAMA, "ollama-v1", ("qwen3:8b",)), (VLLM, "vllm", ("meta/Llama",))],
)
def test_a_server_is_known_by_what_it_answers(
    serve, answers: dict[str, object], kind: str, models: tuple[str, ...]
) -> None:
    place = serve(answers)
    (found,) = servers_find([place])
    assert (found.url, found.kind, found.models) == (f"{place}/v1", kind, models)


def test_closed_ports_locked_servers_and_pure_embedders_are_not_offered(serve, chat: Server) -> None:
    locked = chat.url.removesuffix("/v1")
    assert servers_find([serve(ONLY_EMBEDDINGS), serve({}), locked, "http://127.0.0.1:9"]) == []

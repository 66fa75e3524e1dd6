"""Plain HTTP to the running servers, without the product's own client."""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """One of the embedded servers and its key."""

    url: str
    key: str

    def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> Reply:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        word = self.key if key is None else key
        authorization = {"Authorization": f"Bearer {word}"} if word else {}
        try:
            connection.request(
                method, path, sent, {"Content-Type": "application/json", **authorization, **headers}
            )
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="session")
def embedder() -> Server:
    return Server(settings.EMBEDDING_URL, settings.EMBEDDING_API_KEY)


@pytest.fixture(scope="session")
def chat() -> Server:
    return Server(settings.INFERENCE_URL, settings.INFERENCE_API_KEY)


@pytest.fixture
def embed(embedder: Server) -> Callable[..., Reply]:
    def ask(text: Any, **fields: Any) -> Reply:
        return embedder.ask(
            "POST", "/v1/embeddings", {"model": settings.EMBEDDING_MODEL, "input": text, **fields}
        )

    return ask

"""The embedding server: multilingual-e5-small behind OpenAI's `/v1/embeddings`.

    python -m app.embedded.embed_server < configuration.json

The configuration comes on standard input: {"port", "key", "folder" (model and tokenizer), "name", "threads"}.
Texts beyond 512 tokens are cut, and the answer says which: field `truncated` and header `x-truncated-inputs`.
`/metrics` counts calls and tokens since the start, for Prometheus and for whoever checks the ledger.
"""

import asyncio
import hmac
import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from app.embedded.e5_model import E5Model
from app.embedded.e5_tokenizer import MAX_TOKENS, E5Tokenizer, Encoded
from app.embedded.embed_batcher import Batcher, Overfull
from app.embedded.embed_wire import MAX_BODY, EmbedCall, WireError, answer_render, call_parse, models_render

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
DIMENSION = 384
# Texts a tokenizer call takes at once: a query's own call waits behind at most one such slice.
SLICE = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Disconnected(Exception):
    """The caller went away."""


class EmbedServer:
    """The ASGI application of one model."""

    def __init__(self, tokenizer: E5Tokenizer, model: E5Model, *, name: str, key: str) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._key = key.encode()
        self._texts = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenizer")
        self.batcher = Batcher(model.run)
        self._calls = self._tokens = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request; also the server's start and end."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                answer = await self._route(scope, receive)
            except WireError as exc:
                retry = {"retry-after": "1"} if exc.status == 503 else {}
                answer = Answer(exc.body(), exc.status, retry)
            except Disconnected:
                return
            await _respond(send, answer)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self.batcher.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.batcher.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _route(self, scope: Message, receive: Receive) -> Answer:
        route = (scope["method"], scope["path"].rstrip("/"))
        if route == ("GET", "/health"):
            return Answer(b'{"status":"ok"}')
        self._authenticate(scope)
        if route == ("GET", "/v1/models"):
            return Answer(models_render(self._name, dimension=DIMENSION, max_tokens=MAX_TOKENS))
        if route == ("GET", "/metrics"):
            return self._metrics()
        if route == ("POST", "/v1/embeddings"):
            call = call_parse(await _read(scope, receive), model=self._name, dimension=DIMENSION)
            return await self._until_gone(self._embed(call), receive)
        raise WireError(404, "not_found", "Known paths are /v1/embeddings, /v1/models, /metrics and /health.")

    def _authenticate(self, scope: Message) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self._key):
            raise WireError(401, "invalid_api_key", "The key is missing or wrong; send it as a bearer key.")

    async def _encode(self, texts: tuple[str, ...]) -> list[Encoded]:
        loop = asyncio.get_running_loop()
        found: list[Encoded] = []
        for start in range(0, len(texts), SLICE):
            found += await loop.run_in_executor(
                self._texts, self._tokenizer.encode, texts[start : start + SLICE]
            )
        return found

    async def _embed(self, call: EmbedCall) -> Answer:
        items = await self._encode(call.inputs)
        try:
            vectors = await self.batcher.embed(items, lane=call.input_type)
        except Overfull as exc:
            raise WireError(
                503, "busy", "Too many texts are waiting already; try again in a moment."
            ) from exc
        truncated = [number for number, item in enumerate(items) if item.truncated]
        tokens = sum(len(item.ids) for item in items)
        self._calls, self._tokens = self._calls + 1, self._tokens + tokens
        body = answer_render(call, vectors, model=self._name, tokens=tokens, truncated=truncated)
        return Answer(
            body, headers={"x-truncated-inputs": ",".join(map(str, truncated))} if truncated else {}
        )

    def _metrics(self) -> Answer:
        """What was answered; a caller that left before its answer is not in it."""
        lines = (
            "# TYPE embedding_requests_total counter",
            f"embedding_requests_total {self._calls}",
            "# TYPE embedding_prompt_tokens_total counter",
            f"embedding_prompt_tokens_total {self._tokens}",
            "",
        )
        return Answer("\n".join(lines).encode(), headers={"content-type": "text/plain; version=0.0.4"})

    @staticmethod
    async def _until_gone(work: Awaitable[Answer], receive: Receive) -> Answer:
        """The answer, unless the caller leaves first: then nothing more is computed for it."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(receive())
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            gone.cancel()
            return task.result()
        task.cancel()
        raise Disconnected


async def _read(scope: Message, receive: Receive) -> bytes:
    """The body, at most 16 MiB."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    too_large = WireError(
        413, "request_too_large", f"The body may have {MAX_BODY} bytes; send fewer texts at once."
    )
    if length.isdigit() and int(length) > MAX_BODY:
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise too_large
        if not message.get("more_body"):
            return bytes(body)


async def _respond(send: Send, answer: Answer) -> None:
    headers = {"content-type": "application/json", "content-length": str(len(answer.body)), **answer.headers}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": answer.body})


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    configuration = json.load(sys.stdin)
    folder = Path(configuration["folder"])
    server = EmbedServer(
        E5Tokenizer(folder),
        E5Model(folder / "model.onnx", threads=int(configuration["threads"])),
        name=configuration["name"],
        key=configuration["key"],
    )
    uvicorn.run(
        server,
        host="127.0.0.1",
        port=int(configuration["port"]),
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )


if __name__ == "__main__":
    main()

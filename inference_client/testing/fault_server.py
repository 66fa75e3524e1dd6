"""A small HTTP server that answers as a model server would, or fails the way one does.

    python -m inference_client.testing.fault_server --port 9000 --words 20 --gap-ms 5 --cut-at 300

It answers the chat routes of every adapter, embeddings in the OpenAI shape, and rerank by shared words. Inside tests it
runs in the same event loop:

    async with FaultServer(Script(status=429, headers={"retry-after": "2"}), Script()) as server:
        ... server.url, server.seen
"""

import argparse
import asyncio
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast

import orjson

from inference_client.adapters.scripted import Answer
from inference_client.testing.dialects import adapter_at, embeddings_body, rerank_body

Ending: TypeAlias = Literal["normal", "drop", "reset", "hang"]
_WORDS = ("Good", " day", ", this", " is", " a", " scripted", " answer", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How one request is answered."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: tuple[bytes, ...] | None = None
    """Pieces, written one by one; None stands for `answer` in the dialect of the request's route."""
    answer: Answer = field(default_factory=lambda: Answer(words=_WORDS))
    content_type: str | None = None
    wait_s: float = 0.0
    """Before the headers."""
    gap_s: float = 0.0
    """Before each piece."""
    cut_at: int | None = None
    """Bytes of the body after which it ends in the way of `ending`."""
    ending: Ending = "normal"
    """How the body ends: properly, by closing or resetting the connection, or not at all."""
    answers: bool = True
    """False: the request is read and the connection closed without a byte."""
    keep_alive: bool = True


@dataclass(slots=True)
class Seen:
    """A request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    first_on_connection: bool
    arrived_at: float
    """By the loop's clock, like `left_at`."""
    sent: int = 0
    """Bytes of the body written."""
    finished: bool = False
    left_at: float | None = None
    """When the connection went away before the answer was finished."""

    @property
    def json(self) -> Any:
        """The body, read."""
        return orjson.loads(self.body)


class FaultServer:
    """Plays its scripts in order, one per request; the last one stays."""

    def __init__(
        self, *scripts: Script, host: str = "127.0.0.1", port: int = 0, slots: int | None = None
    ) -> None:
        """Of more than `slots` requests the others wait their turn, as on a real server; None: nobody waits."""
        self._scripts = list(scripts) or [Script()]
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self.room: asyncio.Semaphore | nullcontext[None] = (
            asyncio.Semaphore(slots) if slots else nullcontext()
        )
        self.seen: list[Seen] = []
        self.connections: set[_Connection] = set()

    @property
    def url(self) -> str:
        """`http://host:port`."""
        return f"http://{self._host}:{self._port}"

    def next_script(self) -> Script:
        """The script for the request that just came."""
        return self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), self._host, self._port, backlog=4096
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self.connections):
            connection.drop(reset=True)

    async def serve(self) -> None:
        """Run until cancelled."""
        async with self:
            print(f"listening on {self.url}", flush=True)  # noqa: T201 - a command's output
            await asyncio.Event().wait()


class _Connection(asyncio.Protocol):
    def __init__(self, server: FaultServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._current: Seen | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._current is not None and not self._current.finished:
            self._current.left_at = self._loop.time()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        size = int(headers.get("content-length", "0"))
        if len(rest) < size:
            return
        self._buffer = rest[size:]
        method, path, _ = lines[0].split(" ", 2)
        seen = Seen(method, path, headers, rest[:size], self._count == 0, self._loop.time())
        self._count += 1
        self._server.seen.append(seen)
        self._current = seen
        self._task = self._loop.create_task(self._in_turn(seen, self._server.next_script()))

    def drop(self, *, reset: bool) -> None:
        """Close the connection, politely or not."""
        assert self._transport is not None
        if reset:
            # With a lingering time of zero the socket answers with RST instead of FIN.
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        else:
            self._transport.close()

    async def _in_turn(self, seen: Seen, script: Script) -> None:
        async with self._server.room:
            await self._answer(seen, script)

    async def _answer(self, seen: Seen, script: Script) -> None:
        await asyncio.sleep(script.wait_s)
        if not script.answers:
            self.drop(reset=script.ending == "reset")
            return
        content_type, pieces = _content(seen, script)
        self._write(_head(script, content_type))
        for piece in pieces:
            if script.gap_s:
                await asyncio.sleep(script.gap_s)
            room = len(piece) if script.cut_at is None else script.cut_at - seen.sent
            self._piece(seen, piece[:room])
            if room <= len(piece) and script.cut_at is not None:
                break
        await self._end(seen, script)

    async def _end(self, seen: Seen, script: Script) -> None:
        if script.ending == "hang":
            await asyncio.Event().wait()
        seen.finished = True
        if script.ending == "normal":
            self._write(b"0\r\n\r\n")
            if script.keep_alive:
                return
        self.drop(reset=script.ending == "reset")

    def _piece(self, seen: Seen, piece: bytes) -> None:
        if piece:
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
            seen.sent += len(piece)

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


def _content(seen: Seen, script: Script) -> tuple[str, tuple[bytes, ...]]:
    if script.body is not None:
        return script.content_type or "text/event-stream", script.body
    adapter = adapter_at(seen.path)
    if adapter is not None:
        return script.content_type or adapter.content_type, tuple(adapter.scripted(script.answer))
    if seen.path.endswith("/embeddings"):
        return "application/json", (embeddings_body(seen.json["input"]),)
    if seen.path.endswith("/rerank"):
        return "application/json", (rerank_body(seen.json),)
    if seen.path.endswith("/chat_tokenize"):
        text = "".join(f"<{message['role']}>{message['content']}" for message in seen.json["messages"])
        words = [{"id": number, "text": word} for number, word in enumerate(text.split())]
        return "application/json", (orjson.dumps({"tokenize_response": words, "templated_text": text}),)
    return "application/json", (orjson.dumps({"object": "list", "data": [{"id": "scripted"}]}),)


def _head(script: Script, content_type: str) -> bytes:
    headers = {"content-type": content_type, "transfer-encoding": "chunked", **script.headers}
    if not script.keep_alive:
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {script.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def server_of(arguments: list[str] | None = None) -> FaultServer:
    """The server that the command line describes."""
    parser = argparse.ArgumentParser(
        prog="python -m inference_client.testing.fault_server", description=__doc__
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--words", type=int, default=8, help="words of the answer, one token each")
    parser.add_argument(
        "--usage", default="right", choices=("right", "none", "zero", "wrong", "twice", "running")
    )
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--retry-after", help="value of that header")
    parser.add_argument("--wait-ms", type=float, default=0.0, help="before the headers")
    parser.add_argument("--gap-ms", type=float, default=0.0, help="before each piece")
    parser.add_argument("--cut-at", type=int, help="bytes of the body to send")
    parser.add_argument("--ending", default="normal", choices=("normal", "drop", "reset", "hang"))
    options = parser.parse_args(arguments)
    refusal = (orjson.dumps({"error": {"message": "Scripted refusal.", "code": str(options.status)}}),)
    script = Script(
        status=options.status,
        headers={"retry-after": options.retry_after} if options.retry_after else {},
        body=refusal if options.status >= 400 else None,
        content_type="application/json" if options.status >= 400 else None,
        answer=Answer(words=tuple(f" word{number}" for number in range(options.words)), usage=options.usage),
        wait_s=options.wait_ms / 1000,
        gap_s=options.gap_ms / 1000,
        cut_at=options.cut_at,
        ending=options.ending,
    )
    return FaultServer(script, host=options.host, port=options.port)


def main(arguments: list[str] | None = None) -> int:
    """Serve until stopped; the exit code is 1 where the port is taken."""
    try:
        asyncio.run(server_of(arguments).serve())
    except OSError as exc:
        # asyncio's own wording names the address and the reason.
        print(f"The server cannot listen: {exc.strerror}.", file=sys.stderr)  # noqa: T201 - a command's output
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())

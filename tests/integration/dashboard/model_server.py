"""A model server with knobs: it answers as vLLM does, tells its load as vLLM does, and can be slow in every way."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

WORDS = 12


@dataclass(frozen=True, slots=True)
class Manner:
    """How it serves; seconds."""

    prefill_s: float = 0.02
    gap_s: float = 0.003
    slots: int = 64
    batches: bool = True
    """False: those who run take turns, so each token takes as many times longer."""
    wakes_after_s: float = 1e9
    """After a silence of this length, it loads its model again."""
    waking_s: float = 0.0
    kv_cache_share: float = 0.2
    thrown_out_s: float = 0.0
    """Every request is thrown out once in the middle and waits this long."""


@dataclass(slots=True)
class ModelServer:
    """`async with ModelServer() as server:` gives `server.url`; change `server.manner` at will."""

    manner: Manner = field(default_factory=Manner)
    port: int = 0
    running: int = 0
    waiting: int = 0
    preemptions: int = 0
    _left_at: float = 0.0
    _server: asyncio.Server | None = None
    _room: asyncio.Condition = field(default_factory=asyncio.Condition)

    def become(self, **knobs: float | bool) -> None:
        """Serve in the usual manner but for these knobs."""
        self.manner = replace(Manner(), **knobs)  # type: ignore[arg-type]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._left_at = asyncio.get_running_loop().time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                sizes = [line for line in lines if line.lower().startswith("content-length:")]
                await reader.readexactly(int(sizes[0].split(":")[1]) if sizes else 0)
                await (self._metrics(writer) if lines[0].startswith("GET") else self._answer(writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _metrics(self, writer: asyncio.StreamWriter) -> None:
        body = (
            f"vllm:num_requests_running {self.running}\nvllm:num_requests_waiting {self.waiting}\n"
            f"vllm:kv_cache_usage_perc {self.manner.kv_cache_share}\n"
            f"vllm:num_preemptions_total {self.preemptions}\n"
        ).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        manner = self.manner
        self.waiting += 1
        async with self._room:
            await self._room.wait_for(lambda: self.running < manner.slots)
            self.waiting -= 1
            self.running += 1
        try:
            await self._generate(writer, manner)
        finally:
            async with self._room:
                self.running -= 1
                self._room.notify_all()
            self._left_at = asyncio.get_running_loop().time()

    async def _generate(self, writer: asyncio.StreamWriter, manner: Manner) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        silent = asyncio.get_running_loop().time() - self._left_at
        await asyncio.sleep(manner.prefill_s + (manner.waking_s if silent > manner.wakes_after_s else 0.0))
        for number in range(WORDS):
            if number == WORDS // 2 and manner.thrown_out_s:
                self.preemptions += 1
                await asyncio.sleep(manner.thrown_out_s)
            _chunk(writer, {"choices": [{"index": 0, "delta": {"content": f" word{number}"}}]})
            await asyncio.sleep(manner.gap_s * (1 if manner.batches else self.running))
        _chunk(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 140, "completion_tokens": WORDS, "total_tokens": 140 + WORDS}
        _chunk(writer, {"choices": [], "usage": usage})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


def _chunk(writer: asyncio.StreamWriter, body: dict[str, object]) -> None:
    frame = b"data: " + json.dumps({"id": "c", "model": "m", **body}).encode() + b"\n\n"
    writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))


@dataclass(slots=True)
class Way:
    """A stretch of network before a server: what goes through it arrives `delay_s` later, both ways."""

    host: str
    upstream: int
    delay_s: float = 0.0
    port: int = 0
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, self.upstream)
        await asyncio.gather(self._one_way(reader, far_writer), self._one_way(far_reader, writer))

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65536):
            loop.call_later(self.delay_s, writer.write, data)
        loop.call_later(self.delay_s + 0.01, writer.close)

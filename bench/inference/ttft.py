"""Milliseconds until the first token: this client, httpx by its own transport, and a bare socket as the floor."""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import httpx

from bench.inference.server import scripted
from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.client import Client
from inference_client.servers import Server
from inference_client.types import ChatRequest, Message

CALLS = 400
REQUEST = ChatRequest(model="m", messages=(Message("user", "Hello " * 200),), max_output_tokens=9)
KIND = kind_of("openai-compatible")
Once = Callable[[], Awaitable[float]]


def measure(runs: int) -> None:
    """One line for each way, alone and fifty at once."""
    with scripted(words=5) as url:
        for at_once in (1, 50):
            for name, way in (("bare socket", _bare), ("inference_client", _ours), ("httpx", _httpx)):
                medians = [asyncio.run(way(url, at_once)) for _ in range(runs)]
                row = {"way": name, "at_once": at_once, "ms": round(statistics.median(medians), 3)}
                spread = {"from": round(min(medians), 3), "to": round(max(medians), 3)}
                print(json.dumps({"ttft": row | spread}), flush=True)


async def _median(once: Once, at_once: int) -> float:
    async def several(count: int) -> list[float]:
        return [await once() for _ in range(count)]

    await several(10)
    found = await asyncio.gather(*(several(CALLS // at_once) for _ in range(at_once)))
    return statistics.median([value for row in found for value in row]) * 1000


async def _ours(url: str, at_once: int) -> float:
    client, server = Client(), Server(kind=KIND.name, base_url=url)

    async def once() -> float:
        started = time.perf_counter()
        async with client.chat(server, REQUEST) as call:
            await anext(call)
            took = time.perf_counter() - started
            async for _ in call:
                pass
        return took

    try:
        return await _median(once, at_once)
    finally:
        await client.aclose()


async def _httpx(url: str, at_once: int) -> float:
    wire = adapter_for(KIND).chat_request(Server(kind=KIND.name, base_url=url), KIND, REQUEST)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as client:

        async def once() -> float:
            started = time.perf_counter()
            parser, took = adapter_for(KIND).parser(KIND), 0.0
            async with client.stream("POST", wire.url, headers=wire.headers, content=wire.body) as reply:
                async for data in reply.aiter_raw():
                    if parser.feed(data) and not took:
                        took = time.perf_counter() - started
            return took

        return await _median(once, at_once)


async def _bare(url: str, at_once: int) -> float:
    parts = urlsplit(url)
    wire = adapter_for(KIND).chat_request(Server(kind=KIND.name, base_url=url), KIND, REQUEST)
    lines = (
        f"POST {urlsplit(wire.url).path} HTTP/1.1",
        f"host: {parts.netloc}",
        f"content-length: {len(wire.body)}",
    )
    head = "\r\n".join(lines) + "\r\n\r\n"
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def once() -> float:
        started = time.perf_counter()
        reader, writer = free.pop() if free else await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(head.encode() + wire.body)
        await reader.readuntil(b'"content":" word0"')
        took = time.perf_counter() - started
        await reader.readuntil(b"\r\n0\r\n\r\n")
        free.append((reader, writer))
        return took

    try:
        return await _median(once, at_once)
    finally:
        for _, writer in free:
            writer.close()

"""Many streams open at one web process at once, and what is left of many that were broken off.

    python -m bench.gateway.held [--streams 2000] [--aborted 5000] [--tools DIR]

Half go to `/v1`, half to the chat path; the stand-in server says a token a second. Prints one JSON line: threads of the
web process, connections to PostgreSQL, blocks that Python uses and resident memory at rest, with all streams open, and
after as many as `--aborted` were left by their readers in the middle of their answers. Blocks tell what is kept;
resident memory also counts what is free between them.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import psycopg

from bench.stack import WEB_PORT, place, prepare, services, tools_of_the_load, upstream, web

GAP_MS = 1000
SETTLED_SECONDS = 8
AT_ONCE = 100
"""Requests under way before their first token: people do not all press Send in one moment."""
_BLOCKS = "tessera_memory_blocks_here "
_ASKED = "How many words are in this question?"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--aborted", type=int, default=5000)
    parser.add_argument("--tools", type=Path, default=tools_of_the_load())
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with place() as (data, processes):
        env = services(data)
        processes.append(upstream(options.tools, gap_ms=GAP_MS))
        key, conversation = prepare(env)
        processes.append(web(env))
        asked = Asked(key, conversation)
        print(json.dumps(asyncio.run(_measured(asked, options, processes[1].pid, env))), flush=True)


class Asked:
    """The two requests, as bytes."""

    def __init__(self, key: str, conversation: str) -> None:
        turn: dict[str, Any] = {"text": _ASKED, "parent": None, "collections": []}
        messages = [{"role": "user", "content": _ASKED}]
        self._ways = (
            self._post(key, "/v1/chat/completions", {"model": "bench", "stream": True, "messages": messages}),
            self._post(key, f"/api/v1/conversations/{conversation}/turns/", turn),
        )

    @staticmethod
    def _post(key: str, path: str, body: dict[str, Any]) -> bytes:
        text = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{WEB_PORT}\r\nAuthorization: Bearer {key}\r\n"
            f"Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        return head.encode() + text

    async def open(self, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A stream that has said its first token. Errors: RuntimeError with the answer that came instead."""
        reader, writer = await asyncio.open_connection("127.0.0.1", WEB_PORT, limit=2**20)
        writer.write(self._ways[number % 2])
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            raise RuntimeError((head + await reader.read(2000)).decode())
        mark = b'"content":"' if number % 2 == 0 else b"event: delta"
        said = b""
        while mark not in (line := await reader.readline()):
            if not line:
                raise RuntimeError(f"No token came: {said.decode()}")
            said += line
        return reader, writer


async def _measured(
    asked: Asked, options: argparse.Namespace, pid: int, env: dict[str, str]
) -> dict[str, Any]:
    process = psutil.Process(pid)
    url = json.loads((Path(env["TESSERA_DATA"]) / "env.json").read_text())["DATABASE_OWNER_URL"]
    # A first wave shows what a warm process takes; without it the figure would praise the first one.
    await _left(asked, options.streams // 4)
    await _all_ended(url)
    rest = _state(process, url)
    streams = await _opened(asked, options.streams)
    held = _state(process, url)
    for _, writer in streams:
        writer.close()
    left = len(streams)
    while left < options.aborted:
        left += await _left(asked, min(options.streams, options.aborted - left))
    await _all_ended(url)
    after = _state(process, url)
    return {
        "streams": len(streams),
        "broken_off": left,
        "at_rest": rest,
        "all_open": held,
        "afterwards": after,
        "kib_a_stream": round((held["mib"] - rest["mib"]) * 1024 / len(streams), 1),
        "blocks_after_to_before": round(after["blocks"] / rest["blocks"], 4),
        "memory_after_to_before": round(after["mib"] / rest["mib"], 3),
    }


async def _opened(asked: Asked, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    door = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with door:
            return await asked.open(number)

    return await asyncio.gather(*(one(number) for number in range(count)))


async def _left(asked: Asked, count: int) -> int:
    """Streams whose readers leave after the first token."""
    for _, writer in await _opened(asked, count):
        writer.transport.abort()
    return count


async def _all_ended(url: str) -> None:
    """Wait until every call is settled: a turn goes on without its reader."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while True:
            found = await connection.execute("SELECT 1 FROM billing_reservation WHERE state = 'held' LIMIT 1")
            if await found.fetchone() is None:
                break
            await asyncio.sleep(1)
    # What ended is kept a while for readers that are just arriving, and figures of a process for those who scrape.
    await asyncio.sleep(SETTLED_SECONDS)


def _state(process: psutil.Process, url: str) -> dict[str, float]:
    with psycopg.connect(url) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        row = cursor.fetchone()
    return {
        "threads": process.num_threads(),
        "database_connections": row[0] if row else 0,
        "blocks": _blocks(),
        "mib": round(process.memory_info().rss / 2**20, 1),
    }


def _blocks() -> int:
    """Blocks of memory that Python uses in the web process, as it says itself."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{WEB_PORT}/metrics", timeout=30).read().decode()
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith(_BLOCKS))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()

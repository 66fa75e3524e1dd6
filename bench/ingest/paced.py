"""A stand-in for an embedding server on hardware of its own: answers at a set pace, next to no CPU time here.

    python -m bench.ingest.paced --port 9133 --rate 2000

Batches are answered one after the other, each after as long as its texts take at `--rate` texts a second, as one
accelerator would. Vectors are of a pool made at the start; they say nothing of a text.
"""

import argparse
import asyncio
import itertools
from typing import cast

import httptools
import numpy as np
import orjson
import uvloop

DIMENSION, POOL = 384, 4096


class Pace:
    """When the batch that is accepted now will have been computed, seconds of the loop's clock."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0

    def done_at(self, texts: int, now: float) -> float:
        self._free_at = max(now, self._free_at) + texts / self._rate
        return self._free_at


class Server(asyncio.Protocol):
    """One connection; it asks again when it has its answer."""

    def __init__(self, pace: Pace, pool: "itertools.cycle[bytes]") -> None:
        self._pace, self._pool = pace, pool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's own class, of no kin to asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)
        self._parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        body, self._parts = b"".join(self._parts), []
        texts = len(orjson.loads(body)["input"]) if body else 0
        loop = asyncio.get_running_loop()
        loop.call_at(self._pace.done_at(texts, loop.time()), self._answer, texts, body.count(b" "))

    def _answer(self, texts: int, words: int) -> None:
        rows = b",".join(
            b'{"object":"embedding","index":%d,"embedding":%b}' % (number, next(self._pool))
            for number in range(texts)
        )
        body = (
            b'{"object":"list","model":"bench","data":[%b],"usage":{"prompt_tokens":%d,"total_tokens":%d}}'
            % (rows, words, words)
        )
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def serve(port: int, rate: float) -> None:
    """Until it is killed."""
    matrix = np.random.default_rng(0).standard_normal((POOL, DIMENSION))
    units = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).round(6)
    pool = itertools.cycle([orjson.dumps(row.tolist()) for row in units])
    pace = Pace(rate)
    server = await asyncio.get_running_loop().create_server(lambda: Server(pace, pool), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.rate))

"""Microseconds of parsing for one streamed chunk of each dialect, one chunk per read, as it comes from a server."""

import json
import statistics
import time

from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import Answer

WORDS = tuple(f" word{number % 97}" for number in range(2000))


def measure(runs: int) -> None:
    """One line per dialect."""
    for name, adapter in ADAPTERS.items():
        # The last pieces of some dialects repeat the whole text; they are not what a chunk costs.
        pieces = list(adapter.scripted(Answer(words=WORDS)))[: len(WORDS)]
        kind = adapter.kinds[0]
        times = []
        for _ in range(runs + 1):
            parser = adapter.parser(kind)
            started = time.perf_counter()
            for piece in pieces:
                parser.feed(piece)
            times.append((time.perf_counter() - started) / len(pieces) * 1e6)
        best = times[1:]
        row = {"dialect": name, "us_a_chunk": round(statistics.median(best), 2)}
        print(
            json.dumps({"parse": row | {"from": round(min(best), 2), "to": round(max(best), 2)}}), flush=True
        )

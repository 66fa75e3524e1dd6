"""Microseconds of parsing for one streamed chunk of each dialect, one chunk a read, as it comes from a server."""

import json
import statistics
import time

from inference_client.adapters import adapter_for
from inference_client.adapters.kinds import kind_of
from inference_client.testing.dialects import DIALECTS, Answer

WORDS = tuple(f" word{number % 97}" for number in range(2000))
KINDS = {
    "openai": "openai-compatible",
    "anthropic": "anthropic",
    "ollama": "ollama",
    "gemini": "gemini",
    "responses": "openai-responses",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "triton": "triton-vllm",
    "tgi": "tgi-native",
}


def measure(runs: int) -> None:
    """One line a dialect."""
    for name, dialect in DIALECTS.items():
        # The last pieces of some dialects repeat the whole text; they are not what a chunk costs.
        pieces = list(dialect.pieces(Answer(words=WORDS)))[: len(WORDS)]
        kind = kind_of(KINDS[name])
        times = []
        for _ in range(runs + 1):
            parser = adapter_for(kind).parser(kind)
            started = time.perf_counter()
            for piece in pieces:
                parser.feed(piece)
            times.append((time.perf_counter() - started) / len(pieces) * 1e6)
        best = times[1:]
        row = {"dialect": name, "us_a_chunk": round(statistics.median(best), 2)}
        print(
            json.dumps({"parse": row | {"from": round(min(best), 2), "to": round(max(best), 2)}}), flush=True
        )

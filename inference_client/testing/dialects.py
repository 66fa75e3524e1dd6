"""Which wire format is spoken on a route, for a server that answers on all of them. No IO."""

import base64
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.addresses import path_pattern
from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import MODEL


def _routes() -> list[tuple[re.Pattern[str], Adapter]]:
    """Every chat route and who speaks on it; of several that fit one path the longest is meant, so it comes first."""
    found = {kind.chat_path: adapter for adapter in ADAPTERS.values() for kind in reversed(adapter.kinds)}
    return [(path_pattern(path), found[path]) for path in sorted(found, key=len, reverse=True)]


_ROUTES = _routes()


def adapter_at(path: str) -> Adapter | None:
    """The adapter of the route at `path`."""
    bare = path.partition("?")[0]
    return next((adapter for pattern, adapter in _ROUTES if pattern.search(bare)), None)


def embeddings_body(texts: Sequence[str], dimensions: int = 4, *, packed: bool = False) -> bytes:
    """An answer in the OpenAI shape: each vector holds the length of its text."""
    rows = []
    for index, text in enumerate(texts):
        numbers = [float(len(text))] * dimensions
        packed_numbers = base64.b64encode(struct.pack(f"<{dimensions}f", *numbers)).decode()
        rows.append(
            {"object": "embedding", "index": index, "embedding": packed_numbers if packed else numbers}
        )
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps({"object": "list", "model": MODEL, "data": rows, "usage": usage})


def rerank_body(asked: Mapping[str, Any]) -> bytes:
    """An answer to a rerank request, best first: a document's score is its share of the query's words.

    In the shape of Text Embeddings Inference where the request is in it, else in Jina's.
    """
    bare = "texts" in asked
    texts: Sequence[str] = asked["texts" if bare else "documents"]
    words = set(asked["query"].casefold().split())
    scores = [len(words & set(text.casefold().split())) / (len(words) or 1) for text in texts]
    rows = sorted(enumerate(scores), key=lambda row: -row[1])
    if bare:
        return orjson.dumps([{"index": index, "score": score} for index, score in rows])
    tokens = sum(len(text.split()) for text in texts)
    results = [{"index": index, "relevance_score": score} for index, score in rows]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps({"model": MODEL, "results": results, "usage": usage})

"""Reranking, in the shape that Jina and Cohere gave it: vLLM, llama.cpp, Infinity and others took it over, and Text
Embeddings Inference with other names."""

from datetime import UTC, datetime
from math import isfinite
from typing import Any

from inference_client.adapters.addresses import api_url
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_value, obj, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.requests import post
from inference_client.adapters.wire import WireRequest
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.servers import Server
from inference_client.types import Ranked, RerankRequest, Timing
from inference_client.usage import UsageShape, usage_read

# Of a reranker everything is input; some say only the total.
SHAPE = UsageShape(input=("prompt_tokens", "input_tokens", "total_tokens"), output=())


def rerank_request(server: Server, kind: Kind, request: RerankRequest) -> WireRequest:
    """The request for scores of all documents. Raises Unsupported."""
    if kind.rerank_path is None:
        raise Unsupported(f"{kind.title} has no route for reranking. Choose another server for it.")
    body: dict[str, Any] = {**request.extra, "model": request.model, "query": request.query}
    body[kind.rerank_texts] = list(request.documents)
    return post(
        server, kind, api_url(server, kind, kind.rerank_path, request.model), body, accept="application/json"
    )


def ranked(body: bytes, count: int) -> Ranked:
    """The scores in `body`, in the order of the documents, without timing. Raises MalformedAnswer.

    Rows come best first and name their document; a row too few, twice or without a number is no ranking.
    """
    answer = json_value(body)
    told = obj(answer)
    if told.get("error"):
        raise from_value(told)
    rows = items(answer if isinstance(answer, list) else told.get("results", told.get("data")))
    scores: dict[int, float] = {}
    for row in map(obj, rows):
        index, score = row.get("index"), row.get("relevance_score", row.get("score"))
        if not (isinstance(index, int) and _number(index) and _number(score)):
            raise MalformedAnswer(code="odd_score")
        scores[index] = float(score or 0)
    if len(rows) != count or set(scores) != set(range(count)):
        raise MalformedAnswer(code="wrong_number_of_scores")
    return Ranked(
        scores=[scores[index] for index in range(count)],
        usage=usage_read(obj(told.get("usage")), SHAPE),
        timing=Timing(started_at=datetime.now(UTC)),
        served_model=text_of(told.get("model")),
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)

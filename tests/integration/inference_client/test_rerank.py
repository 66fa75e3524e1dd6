"""Reranking over the wire, in the two shapes that servers have for it."""

from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.testing.fault_server import Script
from inference_client.types import RerankRequest
from tests.integration.inference_client.scenes import Scene, run_scene

REQUEST = RerankRequest(model="r", query="red valve", documents=("a blue pump", "the red valve", "red paint"))


def _json(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


async def _rerank(scene: Scene) -> Any:
    found = await scene.client.rerank(scene.server, REQUEST)
    return found, scene.upstream.seen[0]


@pytest.mark.parametrize(
    ("kind", "path", "texts", "tokens"),
    [
        ("openai-compatible", "/v1/rerank", "documents", 8),
        ("vllm", "/v1/rerank", "documents", 8),
        ("llamacpp", "/v1/rerank", "documents", 8),
        ("tei", "/rerank", "texts", None),
    ],
)
def test_scores_in_the_order_of_the_documents(kind: str, path: str, texts: str, tokens: int | None) -> None:
    found, seen = run_scene(_rerank, Script(), kind=kind)
    assert found.scores == [0.0, 1.0, 0.5]
    assert (seen.path, seen.json["query"], seen.json[texts]) == (path, "red valve", list(REQUEST.documents))
    assert found.usage.input_tokens == tokens
    assert found.timing.total_s is not None


def test_what_a_llama_cpp_server_sends_is_read() -> None:
    """Logits below zero, best first, with usage: as its documentation shows."""
    rows = [{"index": i, "relevance_score": score} for i, score in ((1, 4.5), (2, -3.25), (0, -11.0))]
    told = {
        "model": "bge",
        "object": "list",
        "usage": {"prompt_tokens": 42, "total_tokens": 42},
        "results": rows,
    }
    found, _ = run_scene(_rerank, _json(told), kind="llamacpp")
    assert (found.scores, found.served_model, found.usage.input_tokens) == ([-11.0, 4.5, -3.25], "bge", 42)


@pytest.mark.parametrize(
    "rows",
    [
        [{"index": 0, "score": 1}],
        [{"index": 0, "score": 1}, {"index": 0, "score": 2}, {"index": 1, "score": 2}],
        [{"index": 0, "score": 1}, {"index": 1, "score": "high"}, {"index": 2, "score": 2}],
        [{"index": 0, "score": 1}, {"index": 1, "score": 2}, {"index": 3, "score": 2}],
        [{"index": True, "score": 1}, {"index": 1, "score": 2}, {"index": 2, "score": 2}],
        "nonsense",
    ],
)
def test_what_is_no_ranking_is_refused(rows: Any) -> None:
    with pytest.raises(errors.MalformedAnswer):
        run_scene(_rerank, _json({"results": rows}))


@pytest.mark.parametrize(
    ("script", "kind", "expected"),
    [
        (_json({"error": {"message": "busy"}}, status=429), "vllm", errors.Throttled),
        (_json({"error": {"message": "no", "code": 500}}, status=500), "vllm", errors.InferenceError),
        (_json({"error": "off", "error_type": "backend"}), "tei", errors.InferenceError),
        (Script(), "anthropic", errors.Unsupported),
    ],
)
def test_failures_are_told_apart(script: Script, kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        run_scene(_rerank, script, kind=kind)

"""Embeddings over the wire."""

from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.servers import Timeouts
from inference_client.testing.fault_server import Script
from inference_client.types import EmbedRequest
from tests.integration.inference_client.scenes import Scene, run_scene

REQUEST = EmbedRequest(model="e", inputs=("one", "three words here"), input_type="query", dimensions=4)


def _json(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


async def _embed(scene: Scene) -> Any:
    found = await scene.client.embed(scene.server, REQUEST)
    return found, scene.upstream.seen[0]


def test_embeddings_in_the_order_of_the_inputs() -> None:
    found, seen = run_scene(_embed, Script())
    assert found.vectors == [[3.0] * 4, [16.0] * 4]
    assert (found.usage.input_tokens, found.usage.state) == (4, "reported")
    assert seen.json["input_type"] == "query"
    assert (seen.json["encoding_format"], seen.json["dimensions"]) == ("float", 4)
    assert found.timing.total_s is not None


ROWS = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]


def test_embeddings_out_of_order_are_put_in_order() -> None:
    found, _ = run_scene(_embed, _json({"data": ROWS}))
    assert found.vectors == [[1.0], [2.0]]
    assert found.usage.state == "absent"


def test_embeddings_of_other_kinds() -> None:
    found, seen = run_scene(
        _embed, _json({"embeddings": [[1.0], [2.0]], "prompt_eval_count": 9}), kind="ollama"
    )
    assert (found.usage.input_tokens, seen.path) == (9, "/api/embed")
    found, seen = run_scene(
        _embed, _json({"embeddings": [{"values": [1.0]}, {"values": [2.0]}]}), kind="gemini"
    )
    assert (found.vectors, found.usage.state) == ([[1.0], [2.0]], "absent")
    assert seen.json["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


@pytest.mark.parametrize(
    ("script", "kind", "expected"),
    [
        (_json({"error": {"code": 429}}, status=429), "openai-compatible", errors.Throttled),
        (
            _json({"error": {"message": "model not loaded", "code": 503}}),
            "openai-compatible",
            errors.Overloaded,
        ),
        (_json({"data": ROWS[:1]}), "openai-compatible", errors.MalformedAnswer),
        (
            _json({"data": [{"embedding": "***"}, {"embedding": []}]}),
            "openai-compatible",
            errors.MalformedAnswer,
        ),
        (_json({"data": [{"embedding": ["x"]}] * 2}), "openai-compatible", errors.MalformedAnswer),
        (Script(), "anthropic", errors.Unsupported),
        (Script(), "bedrock", errors.Unsupported),  # no maker of the model's name is known
        (Script(), "deepseek", errors.Unsupported),
    ],
)
def test_embeddings_that_fail(script: Script, kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        run_scene(_embed, script, kind=kind)


def test_more_texts_than_one_request_takes_go_in_several() -> None:
    async def scene(scene: Scene) -> Any:
        many = EmbedRequest(model="amazon.titan-embed-text-v2:0", inputs=tuple("abcdef"))
        found = await scene.client.embed(scene.server, many)
        return found, sorted(seen.json["inputText"] for seen in scene.upstream.seen)

    one = _json({"embedding": [1.0], "inputTextTokenCount": 3})
    found, texts = run_scene(scene, one, kind="bedrock")
    assert (len(found.vectors), found.usage.input_tokens, texts) == (6, 18, list("abcdef"))


def test_what_was_answered_before_another_request_failed_is_known() -> None:
    """Six texts, one a request: four at once, of which one fails, so two are never asked."""

    async def scene(scene: Scene) -> Any:
        many = EmbedRequest(model="amazon.titan-embed-text-v2:0", inputs=tuple("abcdef"))
        with pytest.raises(errors.Throttled) as caught:
            await scene.client.embed(scene.server, many)
        return caught.value, len(scene.upstream.seen)

    one = _json({"embedding": [1.0], "inputTextTokenCount": 3})
    refused = _json({"error": {"code": 429}}, status=429)
    failure, seen = run_scene(scene, one, one, refused, one, kind="bedrock")
    assert (failure.answered, failure.used.input_tokens, seen) == (3, 9, 4)


def test_no_texts_at_all_are_asked_for_as_they_are() -> None:
    async def scene(scene: Scene) -> Any:
        return await scene.client.embed(scene.server, EmbedRequest(model="e", inputs=()))

    assert run_scene(scene, _json({"data": []})).vectors == []


def test_embeddings_that_take_too_long() -> None:
    with pytest.raises(errors.TimedOut):
        run_scene(_embed, Script(wait_s=30), timeouts=Timeouts(total=0.2))

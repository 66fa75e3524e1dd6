"""Amazon Bedrock beyond Converse: raw answers of each maker, and embeddings."""

import base64
from typing import Any

import orjson
import pytest

from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.eventstream import frame_bytes
from inference_client.servers import Server
from inference_client.types import EmbedRequest
from tests.unit.inference_client.asking import FULL, sent
from tests.unit.inference_client.streams import parser
from tests.unit.inference_client.test_requests import TOOL

BEDROCK = kind_of("bedrock")
NOVA = {"output": {"message": {"content": [{"text": "Hi"}]}}, "stopReason": "end_turn"}
NOVA_USAGE = {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}
WHOLE: list[tuple[str, dict[str, Any], str | None, tuple[int | None, int | None]]] = [
    ("titan", {"results": [{"outputText": "Hi", "completionReason": "FINISH"}]}, "stop", (None, None)),
    ("llama", {"generation": "Hi", "stop_reason": "length"}, "length", (None, None)),
    ("cohere", {"generations": [{"text": "Hi", "finish_reason": "COMPLETE"}]}, "stop", (None, None)),
    ("mistral", {"outputs": [{"text": "Hi", "stop_reason": "stop"}]}, "stop", (None, None)),
    ("jamba", {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}, "stop", (None, None)),
    ("nova", {**NOVA, "usage": NOVA_USAGE}, "stop", (3, 1)),
    (
        "anthropic",
        {
            "type": "message",
            "content": [{"type": "text", "text": "Hi"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 2},
        },
        "stop",
        (9, 2),
    ),
]


@pytest.mark.parametrize(
    ("body", "finish", "usage"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE]
)
def test_whole_answers_of_invoke(body: Any, finish: str, usage: tuple[int | None, int | None]) -> None:
    reader = parser("invoke", "bedrock")
    events = reader.whole(orjson.dumps(body))
    assert "".join(getattr(event, "text", "") for event in events) == "Hi"
    assert (reader.finish_reason, reader.error) == (finish, None)
    told = reader.usage()
    assert (told.input_tokens, told.output_tokens) == usage


def _frames(*chunks: Any) -> bytes:
    inner = (base64.b64encode(orjson.dumps(chunk)).decode() for chunk in chunks)
    return b"".join(frame_bytes({":event-type": "chunk"}, orjson.dumps({"bytes": row})) for row in inner)


def test_streamed_answers_of_nova() -> None:
    reader = parser("invoke-with-response-stream", "bedrock")
    events = reader.feed(
        _frames(
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"text": "Hi"}, "contentBlockIndex": 0}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "max_tokens"}},
            {"metadata": {"usage": NOVA_USAGE}, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}},
        )
    )
    assert [getattr(event, "text", "") for event in events] == ["Hi"]
    assert (reader.finish_reason, reader.ended, reader.usage().output_tokens) == ("length", True, 1)


def test_a_tool_that_may_not_be_called_is_not_offered() -> None:
    """There is no word for `none` on this server."""
    assert "toolConfig" not in sent("bedrock", tools=(TOOL,), tool_choice="none")[1]


# ------------------------------------------------------------------------------------------------ embeddings


@pytest.mark.parametrize(
    ("model", "fields", "body"),
    [
        ("amazon.titan-embed-text-v1", {}, {"inputText": "a"}),
        ("eu.amazon.titan-embed-text-v2:0", {"dimensions": 256}, {"inputText": "a", "dimensions": 256}),
        (
            "cohere.embed-multilingual-v3",
            {"input_type": "query"},
            {"texts": ["a"], "input_type": "search_query", "embedding_types": ["float"]},
        ),
        (
            "global.cohere.embed-v4:0",
            {"dimensions": 512, "extra": {"truncate": "NONE"}},
            {
                "texts": ["a"],
                "input_type": "search_document",
                "embedding_types": ["float"],
                "output_dimension": 512,
                "truncate": "NONE",
            },
        ),
    ],
)
def test_what_is_sent_for_vectors(model: str, fields: Any, body: Any) -> None:
    server = Server(kind="bedrock", base_url="http://h:1", api_key="k")
    request = EmbedRequest(model=model, inputs=("a",), **fields)
    wire = adapter_for(BEDROCK).embed_request(server, BEDROCK, request)
    assert wire.url == f"http://h:1/model/{model.replace(':', '%3A')}/invoke"
    assert orjson.loads(wire.body) == body


@pytest.mark.parametrize(("model", "size"), [("cohere.embed-v4:0", 96), ("amazon.titan-embed-text-v2:0", 1)])
def test_how_many_texts_a_request_takes(model: str, size: int) -> None:
    assert adapter_for(BEDROCK).embed_batch(BEDROCK, model) == size
    with pytest.raises(Unsupported, match="twelve"):
        adapter_for(BEDROCK).embed_batch(BEDROCK, "twelve.labs")


@pytest.mark.parametrize(
    ("body", "headers", "tokens"),
    [
        ({"embedding": [1.0, 2.0], "inputTextTokenCount": 5}, {}, 5),
        ({"embedding": [1.0, 2.0]}, {"x-amzn-bedrock-input-token-count": "7"}, 7),
        ({"embeddings": [[1.0, 2.0]], "response_type": "embeddings_floats"}, {}, None),
        ({"embeddings": {"float": [[1.0, 2.0]]}}, {"x-amzn-bedrock-input-token-count": "3"}, 3),
        ({"embeddings": {"float": [[1.0, 2.0]]}}, {"x-amzn-bedrock-input-token-count": "many"}, None),
    ],
)
def test_vectors_that_come_back(body: Any, headers: dict[str, str], tokens: int | None) -> None:
    found = adapter_for(BEDROCK).embeddings(orjson.dumps(body), BEDROCK, 1, headers)
    assert (found.vectors, found.usage.input_tokens) == ([[1.0, 2.0]], tokens)


@pytest.mark.parametrize("body", [b"{}", b'{"embeddings":{"float":[]}}', b'{"embeddings":[[1],[2]]}'])
def test_vectors_that_are_none_or_too_many(body: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        adapter_for(BEDROCK).embeddings(body, BEDROCK, 1)


def test_full_options_are_all_sent() -> None:
    options = {name: value for name, value in FULL.items() if name != "seed"}
    assert sent("bedrock", **options)[1]["inferenceConfig"] == {
        "maxTokens": 50,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["a", "b"],
    }

"""Answers that no recording holds: errors inside, pieces in odd places, blocked prompts."""

from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.eventstream import frame_bytes
from inference_client.types import Event, ReasoningDelta, TextDelta, ToolCallDelta
from tests.unit.inference_client.streams import call, delta, lines, parser, sse

T, R, C = TextDelta, ReasoningDelta, ToolCallDelta
OPENAI: list[tuple[str, list[Any], list[Event]]] = [
    ("role only", [delta(role="assistant", content="")], []),
    ("reasoning, both spellings at once", [delta(reasoning="a", reasoning_content="a")], [R("a")]),
    ("reasoning before text in one chunk", [delta(content="b", reasoning="a")], [R("a"), T("b")]),
    ("refusal", [delta(refusal="No.")], [T("No.")]),
    ("completion", [{"choices": [{"text": "a", "index": 0}]}], [T("a")]),
    ("call without index", [delta(tool_calls=[call(name="f", arguments="{}")])], [C(0, None, "f", "{}")]),
    (
        "two calls without index",
        [
            delta(
                tool_calls=[
                    {"id": "1", **call(name="f", arguments={})},
                    {"id": "2", **call(name="f", arguments={"a": 1})},
                ]
            )
        ],
        [C(0, "1", "f", ""), C(1, "2", "f", '{"a":1}')],
    ),
    (
        "a piece without index goes on",
        [delta(tool_calls=[{"id": "1", **call(name="f")}]), delta(tool_calls=[call(arguments="{")])],
        [C(0, "1", "f", ""), C(0, None, None, "{")],
    ),
    ("legacy call", [delta(function_call={"name": "f", "arguments": "{}"})], [C(0, None, "f", "{}")]),
    (
        "mistral parts",
        [delta(content=[{"type": "thinking", "thinking": [{"text": "a"}]}, {"type": "text", "text": "b"}])],
        [R("a"), T("b")],
    ),
    (
        "nulls everywhere",
        [
            {"choices": None},
            {"choices": []},
            {"choices": [None]},
            {"choices": [{"delta": None}]},
            delta(content=None),
        ],
        [],
    ),
    (
        "odd shapes",
        [delta(tool_calls=7), delta(tool_calls=[7]), delta(content=[7]), {"choices": 7}],
        [C(0, None, None, "")],
    ),
]


@pytest.mark.parametrize(("chunks", "expected"), [row[1:] for row in OPENAI], ids=[row[0] for row in OPENAI])
def test_openai_chunks(chunks: list[Any], expected: list[Event]) -> None:
    assert parser("chat.completions").feed(sse(*chunks)) == expected


@pytest.mark.parametrize("body", [b"data: nonsense\n\n", b"data: 7\n\n", b'data: "x"\n\n', b"data: [1]\n\n"])
@pytest.mark.parametrize(
    "api",
    ["chat.completions", "messages", "responses", "streamGenerateContent", "v2/chat", "generate_stream"],
)
def test_an_event_that_is_no_object_ends_the_reading(api: str, body: bytes) -> None:
    reader = parser(api)
    reader.feed(body)
    assert reader.broken
    assert isinstance(reader.error, errors.MalformedAnswer)
    assert reader.feed(sse(delta(content="late"))) == []
    assert reader.flush() == []


def test_text_before_an_unreadable_event_is_kept() -> None:
    reader = parser("chat.completions")
    assert reader.feed(sse(delta(content="a")) + b"data: {\n\n") == [T("a")]


def test_a_broken_character_costs_itself_only() -> None:
    reader = parser("chat.completions")
    body = b'data: {"choices":[{"delta":{"content":"a\xffb\\ud83d"}}]}\n\n'
    assert reader.feed(body) == [T("a\ufffdb\ufffd")]
    nested = b'data: {"choices":[{"delta":{"content":"x"}}],"\\ud83d":["\\ud83d",{"k":1}]}\n\n'
    assert reader.feed(nested) == [T("x")]


def test_deep_nesting_is_refused_not_suffered() -> None:
    reader = parser("chat.completions")
    reader.feed(b"data: " + b"[" * 100_000 + b"\n\n")
    assert isinstance(reader.error, errors.MalformedAnswer)


def test_an_unfinished_last_event_breaks_nothing() -> None:
    reader = parser("chat.completions")
    reader.feed(sse(delta(content="a")) + b'data: {"choi')
    assert (reader.flush(), reader.error, reader.complete) == ([], None, False)
    reader = parser("api/chat")
    reader.feed(b'{"mess')
    assert (reader.flush(), reader.error, reader.complete) == ([], None, False)


IN_STREAM: list[tuple[str, bytes, type[errors.InferenceError]]] = [
    ("chat.completions", sse({"error": {"code": 429, "message": "slow"}}), errors.Throttled),
    ("chat.completions", b'event: error\ndata: {"message":"x","code":500}\n\n', errors.ServerFault),
    ("messages", sse({"type": "error", "error": {"type": "overloaded_error"}}), errors.Overloaded),
    ("messages", sse({"error": {"message": "x", "code": 400}}), errors.InvalidRequest),
    ("responses", sse({"type": "error", "code": "rate_limit_exceeded", "message": "x"}), errors.Throttled),
    (
        "responses",
        sse({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}}),
        errors.ServerFault,
    ),
    ("streamGenerateContent", sse([{"error": {"code": 503, "status": "UNAVAILABLE"}}]), errors.Overloaded),
    ("api/chat", lines({"error": "model runner has unexpectedly stopped"}), errors.ServerFault),
    (
        "v2/chat",
        sse({"type": "message-end", "delta": {"error": "toxic", "finish_reason": "ERROR"}}),
        errors.ServerFault,
    ),
    ("generate_stream", sse({"error": "Request failed", "error_type": "generation"}), errors.ServerFault),
    ("triton/generate_stream", sse({"error": "in ensemble"}), errors.ServerFault),
    (
        "converse-stream",
        frame_bytes(
            {":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"slow"}'
        ),
        errors.Throttled,
    ),
    (
        "converse-stream",
        frame_bytes({":message-type": "error", ":error-code": "500", ":error-message": "x"}, b""),
        errors.ServerFault,
    ),
]


@pytest.mark.parametrize(("api", "body", "expected"), IN_STREAM)
def test_errors_under_a_200(api: str, body: bytes, expected: type[errors.InferenceError]) -> None:
    reader = parser(api)
    reader.feed(body)
    assert type(reader.error) is expected
    assert not reader.broken


WHOLE_ERRORS = [
    ("chat.completions", {"error": {"code": 503}}, errors.Overloaded),
    ("messages", {"type": "error", "error": {"type": "rate_limit_error"}}, errors.Throttled),
    ("responses", {"error": {"code": "insufficient_quota"}}, errors.UpstreamMoneyExhausted),
    ("v2/chat", {"message": "invalid api token"}, errors.ServerFault),
    ("v1/chat", {"message": "something"}, errors.ServerFault),
    ("generate", {"error": "overloaded", "error_type": "overloaded"}, errors.Overloaded),
    ("triton/generate", {"error": "x"}, errors.ServerFault),
]


@pytest.mark.parametrize(("api", "body", "expected"), WHOLE_ERRORS)
def test_errors_instead_of_a_whole_answer(api: str, body: Any, expected: type[errors.InferenceError]) -> None:
    reader = parser(api)
    reader.whole(orjson.dumps(body))
    assert type(reader.error) is expected


@pytest.mark.parametrize("body", [b"", b"nonsense", b"7", b"[1]"])
def test_a_whole_answer_that_is_none(body: bytes) -> None:
    reader = parser("chat.completions")
    assert reader.whole(body) == []
    assert isinstance(reader.error, errors.MalformedAnswer)

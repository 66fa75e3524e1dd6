"""What only one format has: its own blocks, corrections, finish reasons, frames."""

import struct
import zlib

import orjson
import pytest

from inference_client import errors
from inference_client.adapters.cohere import cohere_rerank
from inference_client.adapters.kinds import parser_for
from inference_client.eventstream import MAX_FRAME_BYTES, EventStreamDecoder, frame_bytes
from inference_client.types import ReasoningDelta, TextDelta, ToolCallDelta
from tests.unit.inference_client.streams import lines, parser, sse

T, R, C = TextDelta, ReasoningDelta, ToolCallDelta


def test_anthropic_inputs_given_whole_when_the_block_begins() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    stream = sse(
        {"type": "content_block_start", "index": 1, "content_block": block},
        {"type": "content_block_stop", "index": 1},
    )
    assert parser("messages").feed(stream) == [C(0, "t", "f", ""), C(0, None, None, '{"a":1}')]


def test_anthropic_servers_that_correct_the_input_at_the_end() -> None:
    reader = parser("messages")
    reader.feed(
        sse(
            {"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "refusal"},
                "usage": {"input_tokens": 9, "output_tokens": 4},
            },
        )
        + b"data: [DONE]\n\n"
    )
    usage = reader.usage()
    assert (usage.input_tokens, usage.output_tokens, reader.finish_reason) == (9, 4, "content_filter")


def test_anthropic_blocks_that_say_nothing_to_us() -> None:
    stream = sse(
        {"type": "content_block_start", "index": "x", "content_block": {"type": "search", "text": "found"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "message_delta", "delta": {}, "usage": None},
        {"type": "something_new"},
    )
    reader = parser("messages")
    assert (reader.feed(stream), reader.error, reader.usage().state) == ([], None, "absent")


def test_blank_lines_and_unknown_events_mean_nothing() -> None:
    assert parser("api/chat").feed(b"\n  \n") == []
    assert parser("v1/chat").feed(lines({"event_type": "search-results"})) == []
    assert parser("chat.completions").feed(sse({"error": None, "choices": []})) == []


def test_ollama_thinking_calls_and_missing_reason() -> None:
    reader = parser("api/chat")
    message = {
        "thinking": "hm",
        "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
    }
    events = reader.feed(lines({"message": message}, {"done": True, "model": "m"}))
    assert events == [R("hm"), C(0, None, "f", '{"a":1}')]
    assert (reader.finish_raw, reader.usage().state) == ("stop", "absent")


def test_gemini_blocked_prompts_have_a_reason_and_no_text() -> None:
    reader = parser("streamGenerateContent")
    events = reader.feed(
        sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}})
    )
    assert (events, reader.finish_reason, reader.usage().input_tokens) == ([], "content_filter", 7)
    assert parser("streamGenerateContent").feed(b"data: [DONE]\n\n") == []


def test_gemini_stop_after_a_call_is_a_tool_call() -> None:
    reader = parser("generateContent")
    part = {"functionCall": {"name": "f", "args": {"a": 1}}}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    assert reader.whole(orjson.dumps(body)) == [C(0, None, "f", '{"a":1}')]
    assert (reader.finish_raw, reader.finish_reason) == ("STOP", "tool_calls")


@pytest.mark.parametrize(
    ("status", "reason", "finish"),
    [
        ("incomplete", "max_output_tokens", "length"),
        ("incomplete", "content_filter", "content_filter"),
        ("completed", None, "stop"),
        ("cancelled", None, "other"),
    ],
)
def test_responses_status(status: str, reason: str | None, finish: str) -> None:
    reader = parser("responses")
    details = {"reason": reason} if reason else None
    reader.feed(
        sse({"type": f"response.{status}", "response": {"status": status, "incomplete_details": details}})
    )
    assert (reader.finish_raw, reader.finish_reason, reader.ended) == (status, finish, True)


def test_responses_arguments_told_only_at_the_end() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    stream = sse(
        {"type": "response.output_item.added", "output_index": "x", "item": item},
        {"type": "response.output_item.done", "item": {**item, "arguments": "{}"}},
        {"type": "response.function_call_arguments.delta", "output_index": 5, "delta": "lost"},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    reader = parser("responses")
    assert reader.feed(stream) == [C(0, "c", "f", ""), C(0, None, None, "{}")]
    assert reader.finish_reason == "tool_calls"


def test_tgi_special_tokens_are_no_text() -> None:
    last = {"token": {"text": "</s>", "special": True}, "generated_text": " ada"}
    last["details"] = {"finish_reason": "eos_token", "generated_tokens": 2, "input_length": 15}
    reader = parser("generate_stream")
    assert reader.feed(sse({"token": {"text": " ada"}}, last)) == [T(" ada")]
    usage = reader.usage()
    assert (usage.input_tokens, usage.output_tokens, reader.finish_reason, reader.ended) == (
        15,
        2,
        "stop",
        True,
    )
    whole = parser("generate")
    assert whole.whole(orjson.dumps([{"generated_text": "x"}])) == [T("x")]


def test_triton_output_numbers_are_added() -> None:
    reader = parser("triton/generate_stream")
    base = {"model_name": "tiny", "num_input_tokens": 11, "num_output_tokens": 1}
    events = reader.feed(
        sse({**base, "text_output": "Ha"}, {**base, "text_output": "lo", "finish_reason": "stop"})
    )
    usage = reader.usage()
    assert (events, usage.input_tokens, usage.output_tokens) == ([T("Ha"), T("lo")], 11, 2)
    assert parser("triton/generate").whole(b'{"text_output":"a"}') == [T("a")]


def test_bedrock_reasoning_and_calls() -> None:
    reader = parser("converse")
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
    ]
    body = {"output": {"message": {"content": content}}, "stopReason": "tool_use"}
    assert reader.whole(orjson.dumps(body)) == [R("hm"), C(0, "t", "f", '{"a":1}')]
    assert reader.usage().state == "absent"


@pytest.mark.parametrize("inner", ["***", "bm90IGpzb24="])
def test_invoke_payloads_that_are_unreadable(inner: str) -> None:
    reader = parser("invoke-with-response-stream")
    reader.feed(frame_bytes({":event-type": "chunk"}, orjson.dumps({"bytes": inner})))
    assert isinstance(reader.error, errors.MalformedAnswer)


def test_frames_are_checked() -> None:
    good = frame_bytes({"a": "b"}, b"x")
    assert EventStreamDecoder().feed(good)[0].headers == {"a": "b"}
    decoder = EventStreamDecoder()
    assert decoder.feed(good[:-1]) == []
    assert decoder.pending == len(good) - 1
    for at in (0, 9, len(good) - 1):
        damaged = bytearray(good)
        damaged[at] ^= 1
        with pytest.raises(errors.MalformedAnswer):
            EventStreamDecoder().feed(bytes(damaged))


def _frame(headers: bytes, total: int | None = None) -> bytes:
    """A frame around raw headers, with right sums."""
    prelude = struct.pack(">II", total or 16 + len(headers), len(headers))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers
    return body + struct.pack(">I", zlib.crc32(body))


def test_headers_of_every_type_are_read_over() -> None:
    typed = b"\x01a\x00\x01b\x03\x00\x07\x01c\x06\x00\x02zz\x01d\x09" + bytes(16) + b"\x01e\x07\x00\x01v"
    assert EventStreamDecoder().feed(_frame(typed))[0].headers == {"e": "v"}


@pytest.mark.parametrize("headers", [b"\x01a\x63", b"\x05a", b"\x01a\x07\x00", b"\x02\xff\xff\x07\x00\x00"])
def test_headers_that_are_damaged(headers: bytes) -> None:
    with pytest.raises(errors.MalformedAnswer):
        EventStreamDecoder().feed(_frame(headers))


def test_a_frame_over_the_cap_is_refused() -> None:
    with pytest.raises(errors.MalformedAnswer) as caught:
        EventStreamDecoder().feed(_frame(b"", MAX_FRAME_BYTES + 1))
    assert caught.value.code == "frame_size"


def test_cohere_reasoning_and_done() -> None:
    reader = parser("v2/chat")
    content = {"message": {"content": {"thinking": "hm"}}}
    assert reader.feed(
        sse({"type": "content-delta", "index": 0, "delta": content}) + b"data: [DONE]\n\n"
    ) == [R("hm")]


def test_rerank_rows_that_are_unreadable_are_left_out() -> None:
    rows = [{"index": 1, "relevance_score": 0.5}, {"index": "x"}, {}]
    assert cohere_rerank(orjson.dumps({"results": rows})) == [(1, 0.5)]


def test_an_unknown_route_has_no_parser() -> None:
    assert parser_for("telepathy", "openai") is None

"""Answers of the Responses route and of Anthropic Messages."""

from typing import Any

from tests.unit.inference_client.cases import BOTH, Case, typed

R = {"input_tokens": 20, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}}
R_WRITE = {"cached_tokens": 8, "cache_write_tokens": 6, "cache_write_tokens_details": {"ttl_12h_tokens": 6}}
CALLS = [
    {"type": "function_call", "call_id": "c1", "name": "a", "arguments": '{"x":1}'},
    {"type": "function_call", "call_id": "c2", "name": "b", "arguments": '{"y":2}'},
]
RESPONSES = [
    Case(
        "parallel calls, one told only at its end",
        "openai",
        "responses",
        typed(
            {"type": "response.output_item.added", "output_index": 0, "item": {**CALLS[0], "arguments": ""}},
            {"type": "response.output_item.added", "output_index": 1, "item": {**CALLS[1], "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"y":2}'},
            {"type": "response.output_item.done", "output_index": 0, "item": CALLS[0]},
            {"type": "response.output_item.done", "output_index": 1, "item": CALLS[1]},
            {"type": "response.completed", "response": {"status": "completed", "output": CALLS, "usage": R}},
        ),
        finish="tool_calls",
        usage=(20, 9, None, None, 4),
        calls=BOTH,
    ),
    Case(
        "text that comes only with the end",
        "xai",
        "responses",
        typed(
            {
                "type": "response.completed",
                "response": {
                    "status": "completed",
                    "output": [
                        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                        {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                    ],
                    "usage": {**R, "input_tokens_details": R_WRITE},
                },
            }
        ),
        text="Hi",
        reasoning="hm",
        finish="stop",
        usage=(20, 9, 8, 6, 4),
        detail={"cache_write_xlong": 6},
    ),
    Case(
        "a refusal, and cut by the cap",
        "azure",
        "responses",
        typed(
            {"type": "response.refusal.delta", "delta": "No."},
            {
                "type": "response.incomplete",
                "response": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                    "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}],
                    "usage": R,
                },
            },
        ),
        text="No.",
        finish="length",
        usage=(20, 9, None, None, 4),
    ),
    Case(
        "blocked, whole",
        "openai",
        "responses",
        {
            "status": "incomplete",
            "incomplete_details": {"reason": "content_filter"},
            "output": [],
            "usage": R,
        },
        finish="content_filter",
        usage=(20, 9, None, None, 4),
        whole=True,
    ),
    Case(
        "failed inside a 200",
        "openai",
        "responses",
        typed(
            {"type": "response.output_text.delta", "delta": "So"},
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "rate_limit_exceeded"}, "usage": None},
            },
        ),
        text="So",
        finish="other",
        error="Throttled",
    ),
]
A_START = {
    "input_tokens": 18,
    "cache_creation_input_tokens": 2048,
    "cache_read_input_tokens": 100,
    "output_tokens": 1,
}
A_KEPT = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 2048}


def tool(index: int, name: str, *pieces: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": f"t{index}", "name": name, "input": {}}
    deltas = [
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "input_json_delta", "partial_json": p},
        }
        for p in pieces
    ]
    start = {"type": "content_block_start", "index": index, "content_block": block}
    return [start, *deltas, {"type": "content_block_stop", "index": index}]


def _thought(text: str) -> list[dict[str, Any]]:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}}
    seal = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}
    return [start, delta, seal, {"type": "content_block_stop", "index": 0}]


def ending(reason: str, **usage: int) -> list[dict[str, Any]]:
    last = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    return [last, {"type": "message_stop"}]


ANTHROPIC = [
    Case(
        "thinking, parallel calls, one without arguments",
        "anthropic",
        "messages",
        typed(
            {"type": "message_start", "message": {"usage": {**A_START, "cache_creation": A_KEPT}}},
            {"type": "ping"},
            *_thought("hm"),
            *tool(1, "a", "", '{"x"', ":1}"),
            *tool(2, "b"),
            *ending("tool_use", output_tokens=77),
        ),
        reasoning="hm",
        finish="tool_calls",
        usage=(18 + 2048 + 100, 77, 100, 2048, None),
        calls=(("a", '{"x":1}'), ("b", "{}")),
        detail={"cache_write_long": 2048},
    ),
    Case(
        "a tool of the server's own is none of ours",
        "anthropic",
        "messages",
        {
            "type": "message",
            "content": [
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "redacted_thinking", "data": "…"},
                {"type": "text", "text": "So."},
            ],
            "stop_reason": "pause_turn",
            "usage": {"input_tokens": 5, "output_tokens": 3, "server_tool_use": {"web_search_requests": 1}},
        },
        text="So.",
        finish="other",
        usage=(5, 3, None, None, None),
        whole=True,
    ),
    Case(
        "a refusal",
        "anthropic-compatible",
        "messages",
        typed(
            {"type": "message_start", "message": {"usage": {"input_tokens": 4, "output_tokens": 1}}},
            *ending("refusal", output_tokens=2),
        ),
        finish="content_filter",
        usage=(4, 2, None, None, None),
    ),
    Case(
        "the window is full",
        "anthropic",
        "messages",
        {
            "type": "message",
            "content": [{"type": "text", "text": "x"}],
            "stop_reason": "model_context_window_exceeded",
            "usage": {"input_tokens": 4, "output_tokens": 2},
        },
        text="x",
        finish="length",
        usage=(4, 2, None, None, None),
        whole=True,
    ),
    Case(
        "overloaded in the middle; the numbers so far are kept",
        "anthropic",
        "messages",
        typed(
            {"type": "message_start", "message": {"usage": {"input_tokens": 4, "output_tokens": 1}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So"}},
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
        text="So",
        usage=(4, 1, None, None, None),
        error="Overloaded",
    ),
]

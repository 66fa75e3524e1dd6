"""Answers of Gemini and Amazon Bedrock."""

import base64
from typing import Any

import orjson

from inference_client.eventstream import frame_bytes
from tests.unit.inference_client.cases import BOTH, Case, frames
from tests.unit.inference_client.cases_responses import ending, tool
from tests.unit.inference_client.streams import sse

G = {
    "promptTokenCount": 410,
    "cachedContentTokenCount": 256,
    "candidatesTokenCount": 6,
    "thoughtsTokenCount": 88,
}
G |= {"totalTokenCount": 504}


def _parts(*parts: dict[str, Any], finish: str | None = None, usage: Any = None) -> dict[str, Any]:
    candidate = {
        "content": {"role": "model", "parts": list(parts)},
        **({"finishReason": finish} if finish else {}),
    }
    return {"candidates": [candidate], **({"usageMetadata": usage} if usage else {})}


GEMINI = [
    Case(
        "thoughts, parallel calls, cumulative numbers",
        "gemini",
        "streamGenerateContent",
        sse(
            _parts(
                {"text": "hm", "thought": True},
                usage={**G, "candidatesTokenCount": 1, "totalTokenCount": 499},
            ),
            _parts(
                {"functionCall": {"name": "a", "args": {"x": 1}}},
                {"functionCall": {"name": "b", "args": {"y": 2}}},
            ),
            _parts(finish="STOP", usage=G),
        ),
        reasoning="hm",
        finish="tool_calls",
        usage=(410, 94, 256, None, 88),
        calls=BOTH,
    ),
    Case(
        "not as events but as one growing array",
        "gemini",
        "streamGenerateContent",
        orjson.dumps([_parts({"text": "Sala"}), _parts({"text": "m."}, finish="MAX_TOKENS", usage=G)]),
        text="Salam.",
        finish="length",
        usage=(410, 94, 256, None, 88),
    ),
    Case(
        "a blocked prompt has no candidates and still its numbers",
        "vertexai",
        "generateContent",
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}},
        finish="content_filter",
        usage=(7, None, None, None, None),
        whole=True,
    ),
    Case(
        "an answer that is cut by a filter, with sound and pictures in the prompt",
        "gemini",
        "generateContent",
        _parts(
            {"text": "x"},
            finish="SAFETY",
            usage={
                "promptTokenCount": 300,
                "candidatesTokenCount": 1,
                "totalTokenCount": 301,
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 10},
                    {"modality": "IMAGE", "tokenCount": 258},
                    {"modality": "AUDIO", "tokenCount": 32},
                ],
            },
        ),
        text="x",
        finish="content_filter",
        usage=(300, 1, None, None, None),
        whole=True,
        detail={"input_image": 258, "input_audio": 32},
    ),
    Case(
        "tools of its own are input too",
        "gemini",
        "generateContent",
        _parts(
            {"text": "x"},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            finish="STOP",
            usage={
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 90,
                "candidatesTokenCount": 5,
                "totalTokenCount": 105,
            },
        ),
        text="x",
        finish="stop",
        usage=(100, 5, None, None, None),
        whole=True,
    ),
    Case(
        "an error wrapped in a list",
        "gemini",
        "streamGenerateContent",
        sse([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}}]),
        error="Throttled",
    ),
]
B = {"inputTokens": 2, "outputTokens": 4, "totalTokens": 4999, "cacheReadInputTokens": 4993}


def _use(ident: str, name: str, value: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": ident, "name": name, "input": value}}


BEDROCK = [
    Case(
        "reasoning and parallel calls, numbers after the stop",
        "bedrock",
        "converse-stream",
        frames(
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
            (
                "contentBlockDelta",
                {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}},
            ),
            (
                "contentBlockStart",
                {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "1", "name": "a"}}},
            ),
            (
                "contentBlockStart",
                {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "2", "name": "b"}}},
            ),
            ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"y":2}'}}}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"x":1}'}}}),
            ("messageStop", {"stopReason": "tool_use"}),
            ("metadata", {"usage": B, "metrics": {"latencyMs": 412}, "p": "abcde"}),
        ),
        reasoning="hm",
        finish="tool_calls",
        usage=(4995, 4, 4993, None, None),
        calls=BOTH,
    ),
    Case(
        "whole, with two calls and a cache written for an hour",
        "bedrock",
        "converse",
        {
            "output": {"message": {"content": [_use("1", "a", {"x": 1}), _use("2", "b", {"y": 2})]}},
            "stopReason": "tool_use",
            "usage": {
                "inputTokens": 10,
                "outputTokens": 3,
                "totalTokens": 113,
                "cacheWriteInputTokens": 100,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 30}, {"ttl": "1h", "inputTokens": 70}],
            },
        },
        finish="tool_calls",
        usage=(110, 3, None, 100, None),
        calls=BOTH,
        whole=True,
        detail={"cache_write_short": 30, "cache_write_long": 70},
    ),
    Case(
        "a guardrail steps in",
        "bedrock",
        "converse",
        {
            "output": {"message": {"content": [{"text": "Blocked."}]}},
            "stopReason": "guardrail_intervened",
            "usage": {"inputTokens": 5, "outputTokens": 0, "totalTokens": 5},
        },
        text="Blocked.",
        finish="content_filter",
        usage=(5, 0, None, None, None),
        whole=True,
    ),
    Case(
        "an error instead of an answer",
        "bedrock",
        "converse",
        {"message": "oops"},
        error="ServerFault",
        whole=True,
    ),
    Case(
        "thrown in the middle",
        "bedrock",
        "converse-stream",
        frames(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "So"}}))
        + frame_bytes({":message-type": "exception", ":exception-type": "modelStreamErrorException"}, b"{}"),
        text="So",
        error="ServerFault",
    ),
    Case(
        "a call in Anthropic's own frames",
        "bedrock",
        "invoke-with-response-stream",
        b"".join(
            frame_bytes(
                {":event-type": "chunk", ":message-type": "event"},
                orjson.dumps({"bytes": base64.b64encode(orjson.dumps(event)).decode()}),
            )
            for event in (*tool(0, "a", '{"x":1}'), *ending("tool_use", input_tokens=6, output_tokens=4))
        ),
        finish="tool_calls",
        usage=(6, 4, None, None, None),
        calls=BOTH[:1],
    ),
]

"""Streams as servers were seen to send them, and what has to be booked of each."""

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from app.gate.attempts import INPUT_LONG, INPUT_SHORT
from inference_client.eventstream import frame_bytes
from tests.unit.inference_client.streams import lines, sse

WORDS = "The quick brown fox jumps over the lazy dog. " * 20
OWN = 201
"""Tokens of `WORDS` by our own count."""
SENT = 2000
"""Tokens of the prompt by our own count."""


@dataclass(frozen=True)
class Seen:
    """What came, how the call ended, and what has to be booked."""

    name: str
    body: bytes
    booked: dict[str, int]
    why: str = ""
    """Of an estimate."""
    route: str = "chat.completions"
    outcome: Literal["completed", "stopped", "failed"] = "completed"
    flags: tuple[str, ...] = ()
    precount: bool = True
    billed: bool = True
    own: int = SENT


def said(text: str = WORDS, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def numbers(inp: Any = SENT, out: Any = 300, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": inp, "completion_tokens": out, **more}


def last(**usage: Any) -> dict[str, Any]:
    return {"choices": [], "usage": usage}


END = said("", "stop")
CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": WORDS}}
TOOL = {"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}
DONE = b"data: [DONE]\n\n"
READ = {"input_tokens": 500, "cache_read_input_tokens": 1500}
HOUR = {
    "input_tokens": 500,
    "cache_creation_input_tokens": 1500,
    "cache_creation": {"ephemeral_1h_input_tokens": 1500},
}
CACHED = {"prompt_tokens_details": {"cached_tokens": 1500}}


def anthropic(start: dict[str, Any], end: dict[str, Any] | None, *, text: str = WORDS) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": start}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    ]
    if end is not None:
        events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end})
        events.append({"type": "message_stop"})
    return sse(*events)


def gemini(*usages: dict[str, Any]) -> bytes:
    answers: list[dict[str, Any]] = [{"content": {"parts": [{"text": WORDS}]}} for _ in usages]
    answers[-1]["finishReason"] = "STOP"
    return sse(
        *(
            {"candidates": [answer], "usageMetadata": usage}
            for answer, usage in zip(answers, usages, strict=True)
        )
    )


def converse(usage: dict[str, Any]) -> bytes:
    def frame(name: str, value: Any) -> bytes:
        return frame_bytes({":message-type": "event", ":event-type": name}, orjson.dumps(value))

    return (
        frame("contentBlockDelta", {"delta": {"text": WORDS}})
        + frame("messageStop", {"stopReason": "end_turn"})
        + frame("metadata", {"usage": usage})
    )


PLAIN = {"input": SENT, "output": 300}
HALF = {"input": 500, "cache_read": 1500, "output": 300}
GUESS = {"input": SENT, "output": OWN}
TABLE = [
    Seen("usage in its own chunk", sse(said(), END, last(**numbers())) + DONE, PLAIN),
    Seen("usage twice, the same", sse(said(), END, last(**numbers()), last(**numbers())) + DONE, PLAIN),
    Seen(
        "usage twice, the cache only in the second",
        sse(said(), END, last(**numbers()), last(**numbers(**CACHED))),
        HALF,
    ),
    Seen(
        "usage twice, the cache only in the first",
        sse(said(), END, last(**numbers(**CACHED)), last(**numbers())),
        HALF,
    ),
    Seen("usage after [DONE]", sse(said(), END) + DONE + sse(last(**numbers())), PLAIN),
    Seen("zeros first, then the numbers", sse(said(usage=numbers(0, 0)), END, last(**numbers())), PLAIN),
    Seen("the numbers, then zeros", sse(said(), END, last(**numbers()), last(**numbers(0, 0))), PLAIN),
    Seen(
        "null before and after",
        sse(said(usage=None), END, last(**numbers()), {"choices": [], "usage": None}),
        PLAIN,
    ),
    Seen("usage beside the finish reason", sse(said(finish="stop", usage=numbers())), PLAIN),
    Seen(
        "usage in the choice",
        sse({"choices": [{"delta": {"content": WORDS}, "finish_reason": "stop", "usage": numbers()}]}),
        PLAIN,
    ),
    Seen(
        "usage in the first chunk alone",
        sse(said(usage=numbers(SENT, 1)), said(WORDS), END),
        {"input": SENT, "output": 2 * OWN - 1},
        "output_implausible",
    ),
    Seen("no usage", sse(said(), END) + DONE, GUESS, "no_usage"),
    Seen("an empty block", sse(said(), END, last()) + DONE, GUESS, "no_usage"),
    Seen("all zero", sse(said(), END, last(**numbers(0, 0))), GUESS, "zero_implausible"),
    Seen(
        "no input", sse(said(), END, last(**numbers(None))), {"input": SENT, "output": 300}, "no_input_tokens"
    ),
    Seen(
        "input 0 for an answer",
        sse(said(), END, last(**numbers(0))),
        {"input": SENT, "output": 300},
        "zero_implausible",
    ),
    Seen(
        "output 0 for an answer",
        sse(said(), END, last(**numbers(SENT, 0))),
        {"input": SENT, "output": OWN},
        "output_implausible",
    ),
    Seen(
        "output 0 for a call of a tool",
        sse(TOOL, last(**numbers(SENT, 0))),
        {"input": SENT, "output": OWN},
        "output_implausible",
    ),
    Seen("output 0 and nothing written", sse(END, last(**numbers(SENT, 0))), {"input": SENT}),
    Seen("negative", sse(said(), END, last(**numbers(-5, -1))), GUESS, "no_usage"),
    Seen("floats that are whole", sse(said(), END, last(**numbers(2000.0, 300.0))), PLAIN),
    Seen("a number in quotes", sse(said(), END, last(**numbers("2000"))), PLAIN, "no_input_tokens"),
    Seen(
        "endless",
        sse(said(), END)
        + b'data: {"choices": [], "usage": {"prompt_tokens": 1e999, "completion_tokens": 300}}\n\n',
        PLAIN,
        "no_input_tokens",
    ),
    Seen(
        "beyond all counting",
        sse(said(), END, last(**numbers(SENT, 2**60))),
        {"input": SENT, "output": OWN},
        "no_output_tokens",
    ),
    Seen(
        "far more read than was sent",
        sse(said(), END, last(**numbers(90_000, 300))),
        {"input": 90_000, "output": 300},
        flags=(INPUT_LONG,),
    ),
    Seen(
        "far less read than was sent",
        sse(said(), END, last(**numbers(700, 300))),
        {"input": 700, "output": 300},
        flags=(INPUT_SHORT,),
    ),
    Seen(
        "cache beside the input under Anthropic's names",
        sse(
            said(),
            END,
            last(
                **numbers(
                    prompt_tokens_details={"cached_tokens": 0},
                    cache_read_input_tokens=1500,
                    cache_creation_input_tokens=0,
                )
            ),
        ),
        HALF,
    ),
    Seen(
        "cache written, under Anthropic's names",
        sse(said(), END, last(**numbers(cache_creation_input_tokens=1500))),
        {"input": 500, "cache_write": 1500, "output": 300},
    ),
    Seen(
        "cache not in the input, the count shows it",
        sse(said(), END, last(**numbers(500, **CACHED))),
        {"input": 500, "cache_read": 1500, "output": 300},
        flags=("usage_ambiguous",),
    ),
    Seen(
        "cache not in the input, the total shows it",
        sse(said(), END, last(**numbers(6, 300, total_tokens=1806, **CACHED))),
        {"input": 6, "cache_read": 1500, "output": 300},
        precount=False,
        flags=("usage_ambiguous",),
        own=1506,
    ),
    Seen(
        "more cached than read, no other witness",
        sse(said(), END, last(**numbers(6, **CACHED))),
        {"cache_read": 1500, "output": 300},
        precount=False,
        flags=("usage_ambiguous", INPUT_SHORT),
        own=1500,
    ),
    Seen(
        "cache and write twice in the total",
        converse(
            {"inputTokens": 500, "cacheReadInputTokens": 1500, "outputTokens": 300, "totalTokens": 3800}
        ),
        HALF,
        route="converse-stream",
        flags=("usage_ambiguous",),
    ),
    Seen(
        "reasoning in the output",
        sse(
            said(),
            END,
            last(**numbers(total_tokens=2300, completion_tokens_details={"reasoning_tokens": 50})),
        ),
        {"input": SENT, "output": 250, "reasoning": 50},
    ),
    Seen(
        "reasoning beside the output",
        sse(
            said(),
            END,
            last(**numbers(total_tokens=2350, completion_tokens_details={"reasoning_tokens": 50})),
        ),
        {"input": SENT, "output": 300, "reasoning": 50},
    ),
    Seen(
        "something in the total that has no name",
        sse(said(), END, last(**numbers(total_tokens=2950))),
        PLAIN,
        flags=("usage_ambiguous",),
    ),
    Seen(
        "Gemini: thoughts beside the answer, numbers cumulative",
        gemini(
            {"promptTokenCount": SENT, "candidatesTokenCount": 90},
            {
                "promptTokenCount": SENT,
                "candidatesTokenCount": 420,
                "thoughtsTokenCount": 80,
                "totalTokenCount": 2500,
            },
        ),
        {"input": SENT, "output": 420, "reasoning": 80},
        route="streamGenerateContent",
    ),
    Seen(
        "Gemini: the cache only in an earlier chunk",
        gemini(
            {"promptTokenCount": SENT, "cachedContentTokenCount": 1500, "candidatesTokenCount": 90},
            {"promptTokenCount": SENT, "candidatesTokenCount": 420},
        ),
        {"input": 500, "cache_read": 1500, "output": 420},
        route="streamGenerateContent",
    ),
    Seen(
        "Anthropic: cumulative, never added",
        anthropic({**READ, "output_tokens": 1}, {**READ, "output_tokens": 300}),
        HALF,
        route="messages",
    ),
    Seen(
        "Anthropic: input only at the end",
        anthropic({"input_tokens": 0, "output_tokens": 0}, {**READ, "output_tokens": 300}),
        HALF,
        route="messages",
    ),
    Seen(
        "Anthropic: input only at the start, 0 at the end",
        anthropic(
            {**READ, "output_tokens": 1},
            {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 300},
        ),
        HALF,
        route="messages",
    ),
    Seen(
        "Anthropic: no numbers at the end",
        anthropic({**READ, "output_tokens": 1}, {}),
        {**HALF, "output": OWN},
        "output_implausible",
        route="messages",
    ),
    Seen(
        "Anthropic: the reader leaves",
        anthropic({**READ, "output_tokens": 1}, None),
        {**HALF, "output": OWN},
        "client_gone",
        route="messages",
        outcome="stopped",
    ),
    Seen(
        "Anthropic: the line breaks",
        anthropic({**HOUR, "output_tokens": 3}, None),
        {"input": 500, "cache_write_long": 1500, "output": OWN},
        "stream_broken",
        route="messages",
        outcome="failed",
    ),
    Seen(
        "the reader leaves before the first word",
        sse(said("")),
        {"input": SENT},
        "client_gone",
        outcome="stopped",
        billed=False,
    ),
    Seen(
        "the reader leaves after the last word", sse(said(), END, last(**numbers())), PLAIN, outcome="stopped"
    ),
    Seen("it fails before the first word", sse(said("")), {}, outcome="failed", billed=False),
    Seen(
        "it fails before the first word, having said what it read",
        sse({"type": "message_start", "message": {"usage": {**READ, "output_tokens": 1}}}),
        {"input": 500, "cache_read": 1500, "output": 1},
        "stream_broken",
        route="messages",
        outcome="failed",
        billed=False,
    ),
    Seen(
        "it fails after it has said all its numbers",
        sse(said(), END, last(**numbers())),
        PLAIN,
        outcome="failed",
    ),
    Seen(
        "Ollama leaves out what came from its cache",
        lines({"message": {"content": WORDS}}, {"done": True, "done_reason": "stop", "eval_count": 300}),
        {"input": SENT, "output": 300},
        "no_input_tokens",
        route="api/chat",
    ),
]

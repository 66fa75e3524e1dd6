"""Usage blocks that others billed wrong: what a stream said, how it ended, and what is booked of it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from app.billing.types import Attempt
from app.catalog.selectors import Target
from app.gate.attempts import chat_attempt, embedding_attempt, embedding_failed
from app.gate.counting import Sent
from inference_client.errors import BrokenStream, InferenceError, Throttled
from inference_client.learned import Facts
from inference_client.records import Progress, record_of
from inference_client.types import Embeddings, TextDelta, Timing, Usage
from inference_client.usage import UsageShape, usage_read
from tests.unit.gate.streams_seen import (
    CACHED,
    END,
    HALF,
    PLAIN,
    READ,
    SENT,
    TABLE,
    WORDS,
    Seen,
    anthropic,
    converse,
    gemini,
    last,
    numbers,
    said,
)  # fmt: skip
from tests.unit.inference_client.streams import lines, parser, sse

TARGET = Target(
    deployment_id=UUID(int=1), public_name="m", upstream_model="m", price_key="m", context_window=None,
    max_output_tokens=1000, clearance="private", tokenizer="o200k_base", abort_stops_billing=True, slots=1,
    is_demonstration=False, kind="openai", base_url="", api_key="", leaves_premises=False, backend_name="b", region="",
)  # fmt: skip

MODELS_READ = {**READ, "output_tokens": 300}
BEDROCK = {"inputTokens": 500, "cacheReadInputTokens": 1500, "outputTokens": 300, "totalTokens": 2300}
THOUGHT = {
    "promptTokenCount": SENT,
    "candidatesTokenCount": 220,
    "thoughtsTokenCount": 80,
    "totalTokenCount": 2300,
}
COUNTED = {"prompt_eval_count": SENT, "eval_count": 300}
PAIRS: list[tuple[str, bytes, dict[str, Any], dict[str, int]]] = [
    (
        "chat.completions",
        sse(said(), END, last(**numbers(**CACHED))),
        {"choices": [{"message": {"content": WORDS}, "finish_reason": "stop"}], "usage": numbers(**CACHED)},
        HALF,
    ),
    (
        "messages",
        anthropic({**READ, "output_tokens": 1}, MODELS_READ),
        {
            "type": "message",
            "content": [{"type": "text", "text": WORDS}],
            "stop_reason": "end_turn",
            "usage": MODELS_READ,
        },
        HALF,
    ),
    (
        "streamGenerateContent",
        gemini(THOUGHT),
        {
            "candidates": [{"content": {"parts": [{"text": WORDS}]}, "finishReason": "STOP"}],
            "usageMetadata": THOUGHT,
        },
        {"input": SENT, "output": 220, "reasoning": 80},
    ),
    (
        "converse-stream",
        converse(BEDROCK),
        {"output": {"message": {"content": [{"text": WORDS}]}}, "stopReason": "end_turn", "usage": BEDROCK},
        HALF,
    ),
    (
        "api/chat",
        lines({"message": {"content": WORDS}}, {"done": True, "done_reason": "stop", **COUNTED}),
        {"message": {"content": WORDS}, "done": True, "done_reason": "stop", **COUNTED},
        PLAIN,
    ),
]
"""(route, streamed, the same in one piece, what has to be booked of both)"""


def attempt_of(seen: Seen, *, whole: bool = False) -> Attempt:
    reader = parser(seen.route)
    events = reader.whole(seen.body) if whole else [*reader.feed(seen.body), *reader.flush()]
    text = "".join(e.text if isinstance(e, TextDelta) else getattr(e, "arguments", "") for e in events)
    error: InferenceError | None = BrokenStream() if seen.outcome == "failed" else None
    progress = Progress(started_at=datetime.now(UTC), output_chars=len(text), sent=True, attempts=1)
    usage = reader.usage(seen.own if seen.precount else None)
    record = record_of(seen.outcome, reader, usage, progress, error)
    sent = Sent(facts=Facts(), text=seen.own, pictures=0, error_pct=5.0)
    return chat_attempt(record, TARGET, sent, text, 1)


@pytest.mark.parametrize("seen", TABLE, ids=lambda seen: seen.name)
def test_what_is_booked(seen: Seen) -> None:
    attempt = attempt_of(seen)
    assert attempt.buckets.quantities() == seen.booked
    assert (attempt.estimate_reason, attempt.estimated) == (seen.why, bool(seen.why))
    assert attempt.flags == seen.flags
    assert attempt.billed is seen.billed


@pytest.mark.parametrize(("route", "stream", "whole", "booked"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_an_answer_in_one_piece_is_booked_as_its_stream(
    route: str, stream: bytes, whole: dict[str, Any], booked: dict[str, int]
) -> None:
    streamed = attempt_of(Seen("stream", stream, booked, route=route))
    at_once = attempt_of(Seen("whole", orjson.dumps(whole), booked, route=route), whole=True)
    assert streamed.buckets.quantities() == at_once.buckets.quantities() == booked
    assert (
        (streamed.estimated, streamed.source)
        == (at_once.estimated, at_once.source)
        == (False, "server_final")
    )


@pytest.mark.parametrize(
    ("told", "count", "why"),
    [
        ({"prompt_tokens": 7}, 7, ""),
        ({"prompt_tokens": 0, "total_tokens": 0}, 10, "zero_implausible"),
        ({}, 10, "no_usage"),
        ({"prompt_tokens": None}, 10, "no_usage"),
        ({"prompt_tokens": 0, "total_tokens": 9}, 9, ""),
    ],
)
def test_an_embedding_call_is_never_free_by_mistake(told: dict[str, Any], count: int, why: str) -> None:
    shape = UsageShape(input=("prompt_tokens", "total_tokens"), output=())
    answer = Embeddings(
        vectors=[[1.0]], usage=usage_read(told, shape), timing=Timing(started_at=datetime.now(UTC))
    )
    attempt = embedding_attempt(answer, TARGET, ["The quick brown fox jumps over the lazy dog."], 1)
    assert (attempt.buckets.input, attempt.estimate_reason) == (count, why)


@pytest.mark.parametrize(
    ("answered", "usage", "booked"),
    [
        (0, None, ("none", {}, False)),
        (2, Usage(input_tokens=9, state="reported"), ("server_final", {"input": 9}, False)),
        (2, Usage(), ("local", {"input": 20}, True)),
    ],
)
def test_of_a_batch_that_failed_in_part_what_was_answered_is_our_cost(
    answered: int, usage: Usage | None, booked: tuple[str, dict[str, int], bool]
) -> None:
    failure = Throttled()
    failure.answered, failure.used = answered, usage
    attempt = embedding_failed(TARGET, failure, ["The quick brown fox jumps over the lazy dog."] * 3, 1)
    assert (attempt.source, attempt.buckets.quantities(), attempt.estimated) == booked
    assert (attempt.billed, attempt.outcome, attempt.error) == (False, "failed", "Throttled")

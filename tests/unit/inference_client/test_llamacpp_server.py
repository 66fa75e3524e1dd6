"""What llama.cpp's server sends when it is asked for timings with each token."""

from typing import Any

import orjson

from inference_client.adapters.kinds import kind_of
from tests.unit.inference_client.streams import parser

TIMINGS = {"cache_n": 30, "prompt_n": 4, "prompt_ms": 12.5, "predicted_n": 1, "predicted_ms": 3.0}


def chunk(text: str, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return b"data: " + orjson.dumps({"object": "chat.completion.chunk", "choices": choices, **more}) + b"\n\n"


def test_a_reader_who_leaves_has_the_servers_own_count() -> None:
    reader = parser("chat.completions", "llamacpp")
    reader.feed(chunk("One", timings=TIMINGS))
    reader.feed(chunk(" two", timings=TIMINGS | {"predicted_n": 2}))
    usage = reader.usage()
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read) == (34, 2, 30)
    assert reader.usage_is_running
    assert reader.prefill_s == 0.0125
    assert kind_of("llamacpp").extra_body == {"timings_per_token": True}


def test_the_usage_block_at_the_end_counts_before_the_timings() -> None:
    reader = parser("chat.completions", "llamacpp")
    reader.feed(chunk("One", timings=TIMINGS))
    reader.feed(
        chunk("", timings=TIMINGS | {"predicted_n": 3}, usage={"prompt_tokens": 34, "completion_tokens": 2})
    )
    assert (reader.usage().output_tokens, reader.usage_is_running) == (2, False)


def test_timings_without_counts_tell_no_usage() -> None:
    reader = parser("chat.completions", "llamacpp")
    reader.feed(chunk("One", timings={"prompt_ms": 12.5, "predicted_n": 1}))
    assert (reader.usage().state, reader.usage_is_running) == ("absent", False)

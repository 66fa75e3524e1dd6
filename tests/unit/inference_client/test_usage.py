"""Usage blocks of every convention, read into one."""

from dataclasses import astuple
from typing import Any

import pytest

from inference_client import usage as u
from inference_client.adapters.anthropic_messages import AnthropicParser
from inference_client.adapters.bedrock_answers import ConverseParser
from inference_client.adapters.cohere import CohereParser
from inference_client.adapters.gemini import GeminiParser
from inference_client.adapters.ollama import OllamaParser
from inference_client.adapters.openai_chat import OpenAIChatParser
from inference_client.types import Usage

OPENAI, ANTHROPIC, GEMINI = OpenAIChatParser.shape, AnthropicParser.shape, GeminiParser.shape
BEDROCK, COHERE, OLLAMA = ConverseParser.shape, CohereParser.shape, OllamaParser.shape
OPENAI_BLOCK = {
    "prompt_tokens": 900,
    "completion_tokens": 52,
    "total_tokens": 952,
    "prompt_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 128},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
CASES: list[tuple[str, u.UsageShape, dict[str, Any], tuple[Any, ...]]] = [
    ("openai", OPENAI, OPENAI_BLOCK, (900, 52, 640, 128, 30)),
    ("no details", OPENAI, {"prompt_tokens": 5, "completion_tokens": 2}, (5, 2, None, None, None)),
    (
        "null details",
        OPENAI,
        {"prompt_tokens": 5, "prompt_tokens_details": None},
        (5, None, None, None, None),
    ),
    (
        "deepseek",
        OPENAI,
        {"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
        (5, 2, 4, None, None),
    ),
    (
        "anthropic",
        ANTHROPIC,
        {
            "input_tokens": 18,
            "cache_creation_input_tokens": 2048,
            "cache_read_input_tokens": 0,
            "output_tokens": 77,
        },
        (2066, 77, 0, 2048, None),
    ),
    (
        "gemini",
        GEMINI,
        {
            "promptTokenCount": 410,
            "cachedContentTokenCount": 256,
            "candidatesTokenCount": 6,
            "thoughtsTokenCount": 88,
            "toolUsePromptTokenCount": 10,
            "totalTokenCount": 514,
        },
        (420, 94, 256, None, 88),
    ),
    (
        "gemini, thoughts only",
        GEMINI,
        {"promptTokenCount": 4, "thoughtsTokenCount": 3},
        (4, 3, None, None, 3),
    ),
    ("ollama", OLLAMA, {"prompt_eval_count": 37, "eval_count": 12}, (37, 12, None, None, None)),
    ("ollama, cached prompt", OLLAMA, {"eval_count": 12}, (None, 12, None, None, None)),
    (
        "cohere",
        COHERE,
        {"tokens": {"input_tokens": 9, "output_tokens": 3}, "cached_tokens": 8},
        (9, 3, 8, None, None),
    ),
    (
        "bools and strings are no numbers",
        OLLAMA,
        {"prompt_eval_count": True, "eval_count": "7"},
        (None, None, None, None, None),
    ),
    (
        "negative and endless are no numbers",
        OLLAMA,
        {"prompt_eval_count": -1, "eval_count": float("inf")},
        (None,) * 5,
    ),
    (
        "floats that are whole",
        OLLAMA,
        {"prompt_eval_count": 6.0, "eval_count": float("nan")},
        (6, None, None, None, None),
    ),
]


@pytest.mark.parametrize(
    ("shape", "block", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_blocks(shape: u.UsageShape, block: dict[str, Any], expected: tuple[Any, ...]) -> None:
    got = u.usage_read(block, shape)
    assert (got.input_tokens, got.output_tokens, got.cache_read, got.cache_write, got.reasoning) == expected
    assert got.raw == block
    assert not got.ambiguous


@pytest.mark.parametrize(
    ("block", "state"),
    [
        (None, "absent"),
        ({}, "absent"),
        ({"other": 1}, "absent"),
        ({"prompt_tokens": 0, "completion_tokens": 0}, "zero"),
        ({"prompt_tokens": 0}, "zero"),
        ({"prompt_tokens": 3, "completion_tokens": 0}, "reported"),
    ],
)
def test_not_told_zero_and_reported_are_three_things(block: dict[str, Any] | None, state: str) -> None:
    assert u.usage_read(block, OPENAI).state == state


# Each row: input, read, write, output, total, own count → whole input, ambiguous.
WITNESSES = [
    ("all agree on exclusive", BEDROCK, (4, 2701, 0, 10, 2715, 2700), (2705, False)),
    ("total and count against the convention", BEDROCK, (5000, 4000, 0, 10, 5010, 5020), (5000, True)),
    ("a doubled total confirms the wrong reading", BEDROCK, (4995, 0, 4993, 19, 10007, 5000), (9988, True)),
    ("only the count speaks against it", BEDROCK, (4995, 0, 4993, 19, None, 5000), (9988, True)),
    ("no witness", BEDROCK, (4, 2701, 0, 10, None, None), (2705, False)),
    (
        "a total that fits neither is no witness, and flagged",
        BEDROCK,
        (4, 2701, 0, 10, 99, None),
        (2705, True),
    ),
    ("a long fresh prompt stays exclusive", BEDROCK, (9000, 100, 0, 10, 9110, 9150), (9100, False)),
]


@pytest.mark.parametrize(
    ("shape", "numbers", "expected"), [r[1:] for r in WITNESSES], ids=[r[0] for r in WITNESSES]
)
def test_three_witnesses(shape: u.UsageShape, numbers: tuple[Any, ...], expected: tuple[int, bool]) -> None:
    inp, read, write, out, total, precount = numbers
    block = {
        "inputTokens": inp,
        "outputTokens": out,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": write,
        "totalTokens": total,
    }
    got = u.usage_read(block, shape, precount=precount)
    assert (got.input_tokens, got.ambiguous) == expected


def test_buckets_are_disjoint_and_complete() -> None:
    usage = u.usage_read(OPENAI_BLOCK, OPENAI)
    got = u.buckets(usage)
    assert (got.input_uncached, got.cache_read, got.cache_write_short, got.reasoning, got.output_text) == (
        132,
        640,
        128,
        30,
        22,
    )
    assert sum(astuple(got)) == 952


def test_buckets_by_lifetime() -> None:
    block = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 5,
    }
    got = u.buckets(u.usage_read(block, ANTHROPIC))
    assert (got.input_uncached, got.cache_write_short, got.cache_write_long, got.output_text) == (
        10,
        10,
        20,
        5,
    )


def test_a_cached_picture_is_one_token_of_each() -> None:
    """Told by its kind and by its cache: 800 of 1,000 were pictures, 900 from the cache, most of them pictures."""
    block = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 900,
        "candidatesTokenCount": 5,
        "promptTokensDetails": [
            {"modality": "IMAGE", "tokenCount": 800},
            {"modality": "AUDIO", "tokenCount": 60},
        ],
    }
    got = u.buckets(u.usage_read(block, GEMINI))
    assert (got.cache_read, got.input_image, got.input_audio, got.input_uncached) == (900, 40, 60, 0)
    assert sum(astuple(got)) == 1005


def test_buckets_never_fall_below_zero() -> None:
    impossible = Usage(input_tokens=5, output_tokens=3, cache_read=9, reasoning=11, state="reported")
    got = u.buckets(impossible)
    assert (got.input_uncached, got.output_text) == (0, 0)
    assert u.usage_read({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, OPENAI).ambiguous
    assert sum(astuple(u.buckets(Usage()))) == 0


def test_later_blocks_overwrite_field_by_field() -> None:
    start = {"input_tokens": 18, "cache": {"a": 1, "b": 2}, "output_tokens": 1}
    assert u.merged(start, {"output_tokens": 77, "input_tokens": None, "cache": {"b": 3}}) == {
        "input_tokens": 18,
        "cache": {"a": 1, "b": 3},
        "output_tokens": 77,
    }
    assert u.merged(None, {"x": 1}) == {"x": 1}


def test_several_requests_of_one_call_add_up_or_are_unknown() -> None:
    parts = [u.usage_read({"prompt_tokens": count}, OPENAI) for count in (3, 4)]
    assert u.usage_sum(parts[:1]) is parts[0]
    both = u.usage_sum(parts)
    assert (both.input_tokens, both.state) == (7, "reported")
    assert both.raw == {"parts": [{"prompt_tokens": 3}, {"prompt_tokens": 4}]}
    assert u.usage_sum([*parts, u.usage_read({}, OPENAI)]).state == "absent"

"""What a server reports, split into what billing prices one by one. Every token once."""

from typing import Any

import pytest

from app.billing.types import Buckets
from app.gate.attempts import _reported
from inference_client.types import Usage


@pytest.mark.parametrize(
    ("told", "split"),
    [
        ({"input_tokens": 10, "output_tokens": 5}, {"input": 10, "output": 5}),
        (
            {"input_tokens": 100, "output_tokens": 50, "cache_read": 60, "reasoning": 20},
            {"input": 40, "cache_read": 60, "output": 30, "reasoning": 20},
        ),
        # 30 written to a cache, 10 of them for an hour, which is dearer
        (
            {"input_tokens": 100, "output_tokens": 1, "cache_write": 30, "detail": {"cache_write_long": 10}},
            {"input": 70, "cache_write": 20, "cache_write_long": 10, "output": 1},
        ),
        (
            {"input_tokens": 100, "output_tokens": 9, "detail": {"input_audio": 80, "output_audio": 4}},
            {"input": 20, "input_audio": 80, "output": 5, "output_audio": 4},
        ),
    ],
)
def test_each_token_stands_in_one_bucket(told: dict[str, Any], split: dict[str, int]) -> None:
    buckets = _reported(Usage(state="reported", **told))
    assert buckets == Buckets(**split)
    assert buckets.input_total + buckets.output_total == told["input_tokens"] + told["output_tokens"]

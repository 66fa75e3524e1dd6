"""Stages of a turn are split by what others measured, and always add up to what our clock saw."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.chat.clock import StageClock
from app.chat.stages import STAGES, stages_split
from inference_client.types import Timing

CLOCK = {"precount": 0.01, "retrieve": 0.5, "infer": 2.0, "settle": 0.02}
EMBED_S = 0.3


def call(**seconds: float) -> Timing:
    return Timing(started_at=datetime(2026, 1, 1, tzinfo=UTC), **seconds)


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        (
            [call(dialled_s=0.1, first_token_s=0.6, total_s=1.9)],
            {"connect": 0.1, "first_token": 0.5, "decode": 1.3, "other": 0.1},
        ),
        (
            [call(dialled_s=0.1, prefill_s=0.2, first_token_s=0.6, total_s=2.0)],
            {"connect": 0.1, "server_queue": 0.3, "prefill": 0.2, "decode": 1.4, "other": 0.0},
        ),
        (
            [call(load_s=0.4, prefill_s=0.1, first_token_s=0.6, total_s=2.0)],
            {"load": 0.4, "server_queue": 0.1, "prefill": 0.1, "decode": 1.4},
        ),
        (
            [call(total_s=0.5), call(first_token_s=0.2, total_s=1.0)],
            {"first_token": 0.2, "decode": 0.8, "retry": 1.0},
        ),
        # Left before the first token: all of it was waiting for that.
        ([call(total_s=1.9)], {"first_token": 1.9, "decode": 0.0}),
        # No server was asked.
        ([], {"retry": 2.0}),
        # A server that tells more than there was is not believed.
        ([call(prefill_s=99.0, first_token_s=1.0, total_s=1.5)], {"prefill": 1.0, "decode": 0.5}),
        ([call(first_token_s=1.0, total_s=99.0)], {"first_token": 1.0, "decode": 1.0, "other": 0.0}),
    ],
    ids=["plain", "prefill", "load", "retried", "left", "resting", "boasting", "clocks"],
)
def test_parts_of_the_model_call(calls: list[Timing], parts: dict[str, float]) -> None:
    split = stages_split(CLOCK, embed_s=EMBED_S, calls=calls)
    assert {name: split[name] for name in parts} == pytest.approx(parts)
    assert (split["embed"], split["search"]) == (pytest.approx(EMBED_S), pytest.approx(0.2))
    assert sum(split.values()) == pytest.approx(sum(CLOCK.values()))
    assert set(split) <= set(STAGES)


def test_a_clock_that_began_with_the_request_names_what_came_before_the_turn() -> None:
    began = StageClock()
    clock = StageClock(began.began - 1.0)
    with clock.stage("precount"):
        pass
    figures: dict[str, Any] = clock.figures(output_tokens=None)
    assert figures["auth_ms"] >= 1000
    parts = [
        value
        for name, value in figures.items()
        if name.endswith("_ms") and name not in {"total_ms", "ttft_ms"}
    ]
    assert sum(parts) == pytest.approx(figures["total_ms"], abs=0.1)

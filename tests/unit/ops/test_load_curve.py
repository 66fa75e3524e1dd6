"""Where the knee is, from calls whose times are given."""

import pytest

from app.ops.load_curve import BUILT_IN, Call, Knee, Level, fitted, knee_of, level_of
from app.ops.management.commands.loadtest import verdict


def level(concurrency: int, tokens_per_s: float, ttft: float | None, *, failed: int = 0) -> Level:
    return Level(
        concurrency=concurrency, calls=10, failed=failed, estimated=0, seconds=1.0, input_tokens=1, output_tokens=1,
        tokens_per_s=tokens_per_s, all_tokens_per_s=2 * tokens_per_s, calls_per_s=1.0,
        ttft_ms=None if ttft is None else {"p50": ttft, "p95": ttft}, itl_ms=None,
    )  # fmt: skip


def call(begun: float, first: float | None, ended: float, output: int = 10, problem: str = "") -> Call:
    return Call(
        begun=begun,
        first_token=first,
        ended=ended,
        input_tokens=5,
        output_tokens=output if not problem else 0,
        problem=problem,
    )


@pytest.mark.parametrize(
    ("levels", "knee"),
    [
        ([], None),
        ([(1, 10, 100)], None),
        ([(1, 10, 100), (2, 19, 110), (4, 35, 120)], None),
        ([(1, 10, 100), (2, 19, 110), (4, 19.5, 300)], 2),
        ([(1, 10, 100), (2, 19, 110), (4, 12, 300)], 2),
        # Throughput stands still while nobody waits longer: the next level tells.
        ([(1, 10, 100), (2, 10, 100), (4, 10, 100)], None),
        ([(1, 10, 100), (2, 10, 100), (4, 10, 500)], 1),
        ([(1, 10, 100), (2, 10.5, 100), (4, 40, 100), (8, 41, 200)], 4),
        ([(4, 19.5, 300), (1, 10, 100), (2, 19, 110)], 2),
        ([(1, 10, 100), (2, 0, None)], 1),
    ],
)
def test_the_knee_is_where_throughput_stops_and_waiting_begins(
    levels: list[tuple[int, float, float | None]], knee: int | None
) -> None:
    found = knee_of([level(*figures) for figures in levels])
    assert (found and found.concurrency) == knee


def test_the_knee_tells_its_throughput() -> None:
    found = knee_of([level(1, 10, 100), level(2, 10, 500)])
    assert found == Knee(concurrency=1, tokens_per_s=10, all_tokens_per_s=20, ttft_p50_ms=100)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ([(1, 10, 100), (2, 10, 500)], "Knee: 1 at once"),
        ([(1, 10, 100), (2, 19, 110)], "throughput still grew"),
        ([(1, 10, 100), (2, 19, 110), (4, 19, 110)], "throughput stopped growing at 2"),
    ],
)
def test_the_verdict_says_what_was_seen(figures: list[tuple[int, float, float]], said: str) -> None:
    levels = [level(*each) for each in figures]
    assert said in verdict(levels, knee_of(levels))


def test_throughput_is_taken_while_all_places_are_full() -> None:
    # Two places: the second call ends at 4, and from then on nobody takes its place.
    found = level_of(2, [call(0, 1, 2), call(0, 1, 4), call(2, 3, 13)])
    assert (found.concurrency, found.calls, found.failed, found.output_tokens) == (2, 3, 0, 30)
    # 10 tokens of the first, 10 of the second, a tenth of the third's ten seconds.
    assert found.tokens_per_s == round((10 + 10 + 1) / 4, 2)
    assert found.all_tokens_per_s == round((10 + 10 + 1 + 15) / 4, 2)
    assert found.seconds == 13
    assert found.ttft_ms == {"p50": 1000.0, "p95": 1000.0}


def test_failed_calls_bring_nothing_and_are_counted() -> None:
    found = level_of(2, [call(0, 1, 2), call(0, None, 2, problem="away")])
    assert (found.calls, found.failed, found.output_tokens, found.tokens_per_s) == (2, 1, 10, 5.0)
    alone = level_of(1, [call(0, None, 1, problem="away")])
    assert (alone.tokens_per_s, alone.ttft_ms, alone.itl_ms) == (0.0, None, None)


def test_lengths_are_cut_to_what_the_deployment_takes() -> None:
    found, cut = fitted([(100, 50), (9000, 50), (100, 900)], window=1000, most_output=200)
    assert (found, cut) == ([(100, 50), (855, 50), (100, 200)], 2)
    assert fitted(BUILT_IN, window=None, most_output=4000) == (list(BUILT_IN), 0)
    assert all(
        0 < given < 64 and 0 < output <= 32
        for given, output in fitted(BUILT_IN, window=64, most_output=99)[0]
    )

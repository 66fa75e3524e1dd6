"""One ranking from two legs: what the mix promises whatever the scales are."""

import pytest

from retrieval.fusion import fused

NEAR = {"a": 0.91, "b": 0.88, "c": 0.86, "d": 0.80}
WORDS = {"b": 14.0, "c": 3.0, "d": 16.0}


def order(vector: dict[str, float], keyword: dict[str, float]) -> list[str]:
    return [key for key, _ in fused(vector, keyword)]


@pytest.mark.parametrize(("stretch", "shift"), [(1.0, 0.0), (0.1, 0.7), (20.0, -3.0)])
def test_neither_leg_gains_by_its_scale(stretch: float, shift: float) -> None:
    moved = {key: value * stretch + shift for key, value in NEAR.items()}
    longer = {key: value * stretch for key, value in WORDS.items()}
    assert order(moved, longer) == order(NEAR, WORDS) == ["b", "a", "c", "d"]


def test_one_rare_word_more_says_less_the_more_there_are() -> None:
    scores = dict(fused(dict.fromkeys("abc", 0.8), {"a": 0.0, "b": 10.0, "c": 20.0}))
    assert scores["b"] - scores["a"] > scores["c"] - scores["b"] > 0


def test_a_leg_that_tells_nothing_leaves_the_order_to_the_other() -> None:
    assert order(NEAR, {}) == ["a", "b", "c", "d"]
    assert order(dict.fromkeys(NEAR, 0.8), WORDS) == ["d", "b", "c", "a"]
    # As good as one another: the same order each time.
    assert order({"z": 0.8, "y": 0.8}, {}) == ["y", "z"]
    assert fused({}, {}) == []

"""One budget function: what it plans fits the window, and what it leaves out is said."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.precount import (
    SMALLEST_OUTPUT_TOKENS,
    Accuracy,
    ContextTooLong,
    Estimate,
    Pair,
    estimate,
)
from inference_client.learned import MESSAGE_OVERHEAD, REPLY_OVERHEAD


def words(text: str) -> int:
    return len(text.split())


def plan(**changes: object) -> Estimate:
    given_: dict[str, object] = {
        "count": words,
        "tokenizer": "words",
        "accuracy": Accuracy("exact", 0),
        "window": 1000,
        "output_cap": 300,
        "output_wanted": 200,
        "system": "be brief",
        "history": (),
        "question": "how many words",
        "searches": False,
    }
    return estimate(**{**given_, **changes})  # type: ignore[arg-type]


def test_parts_add_up() -> None:
    found = plan(history=[Pair("a b", "c d e")], searches=True)
    assert found.system == 2 + MESSAGE_OVERHEAD
    assert found.draft == 3 + MESSAGE_OVERHEAD + REPLY_OVERHEAD
    assert found.history == 5 + 2 * MESSAGE_OVERHEAD
    assert found.total_max == found.system + found.draft + found.history + found.retrieved_max
    assert found.public()["input_tokens"]["total"]["max"] == found.total_max


def test_oldest_pairs_go_first_and_it_is_said() -> None:
    pairs = [Pair(f"q{i} " + "word " * 40, "answer " * 60) for i in range(20)]
    found = plan(history=pairs)
    assert 0 < found.history_kept < 20
    assert found.notices[0]["code"] == "history_trimmed"
    assert found.notices[0]["pairs"] == 20 - found.history_kept
    assert str(20 - found.history_kept) in found.left_out[0]


def test_the_answer_shrinks_before_the_question_is_refused() -> None:
    found = plan(question="word " * 850, output_wanted=300)
    assert SMALLEST_OUTPUT_TOKENS <= found.max_output_tokens < 300
    assert found.notices[0]["code"] == "output_cap_lowered"


def test_a_question_longer_than_the_window_is_refused_with_both_numbers() -> None:
    with pytest.raises(ContextTooLong) as caught:
        plan(question="word " * 990)
    assert caught.value.detail["context_window"] == 1000
    assert caught.value.detail["input_tokens"] > 990


def test_an_unknown_window_trims_nothing() -> None:
    pairs = [Pair("word " * 500, "word " * 500)] * 10
    found = plan(window=None, history=pairs)
    assert found.history_kept == 10
    assert found.left_out == ()


def test_an_uncertain_count_holds_more() -> None:
    sure, unsure = plan(), plan(accuracy=Accuracy("estimated", 15))
    assert sure.held_input == sure.total_max
    assert unsure.held_input == math.ceil(unsure.total_max * 1.15)


@pytest.mark.parametrize(
    ("told", "error", "kind"), [(40, 0.0, "exact"), (21, 4.2, "estimated"), (9, 1.0, "estimated")]
)
def test_a_servers_own_count_replaces_ours_part_by_part(told: int, error: float, kind: str) -> None:
    ours = plan(history=[Pair("a b", "c d e")], searches=True, accuracy=Accuracy("estimated", 15))
    found = ours.told(told, error_pct=error)
    assert (found.known, found.accuracy.kind, found.counted_by) == (told, kind, "server")
    assert found.accuracy.error_pct == math.ceil(error)
    # Passages are still counted here, so their part keeps our band.
    assert found.held_input == math.ceil(
        told * (1 + math.ceil(error) / 100) + ours.retrieved_max * 1.15 - 1e-6
    )
    assert found.budget == ours.budget
    assert found.public()["input_tokens"]["total"] == {
        "expected": told + ours.retrieved_expected,
        "max": told + ours.retrieved_max,
    }


def test_pictures_take_room_that_stitching_never_sees() -> None:
    without, beside = plan(searches=True), plan(searches=True, attachments=400)
    assert beside.attachments == 400
    assert beside.known == without.known + 400
    assert beside.budget - beside.retrieved_max == without.budget - without.retrieved_max


@given(
    window=st.integers(200, 5000),
    question=st.integers(1, 3000),
    pairs=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 400)), max_size=12),
    wanted=st.integers(1, 2000),
    error=st.sampled_from([0, 15, 40]),
    searches=st.booleans(),
)
def test_whatever_is_planned_fits_the_window(
    window: int, question: int, pairs: list[tuple[int, int]], wanted: int, error: int, searches: bool
) -> None:
    try:
        found = plan(
            window=window,
            output_wanted=wanted,
            output_cap=2000,
            accuracy=Accuracy("estimated", error),
            question="w " * question,
            history=[Pair("q " * q, "a " * a) for q, a in pairs],
            searches=searches,
        )
    except ContextTooLong:
        assert question + 2 * MESSAGE_OVERHEAD + SMALLEST_OUTPUT_TOKENS > window / (1 + error / 100) - 10
        return
    assert (
        found.total_max * found.accuracy.factor + found.max_output_tokens * found.accuracy.factor
        <= window + 2
    )
    assert found.max_output_tokens >= min(wanted, SMALLEST_OUTPUT_TOKENS)

"""Which chunks the keyword leg scores when there are too many to score each."""

from retrieval import keyword
from retrieval.keyword import Question
from retrieval.scope import Reach

ALL = Reach(chunks=1_000_000, stored=1_000_000)
HALF = Reach(chunks=500_000, stored=1_000_000)


def candidates(within: Reach, **found: int) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Those of a question whose words are in so many chunks in reach, rarest first; by name instead of number."""
    names = list(found)
    question = Question(
        idf=dict.fromkeys(range(len(names)), 1.0), found_in={n: found[name] for n, name in enumerate(names)}
    )
    alone, together = keyword._candidates(question, within)
    return [names[n] for n in alone], [(names[n], [names[m] for m in beside]) for n, beside in together]


def test_rare_words_bring_up_all_that_hold_them() -> None:
    assert candidates(ALL, a=10, b=2_000, c=3_000) == (["a", "b", "c"], [])


def test_common_words_count_where_two_stand_together() -> None:
    assert candidates(ALL, a=2_000, b=20_000, c=40_000, d=50_000) == (
        ["a"],
        [("c", ["b"]), ("d", ["b", "c"])],
    )


def test_words_that_stand_together_too_often_are_left_out() -> None:
    assert candidates(ALL, a=2_000, b=20_000, c=40_000, d=300_000) == (["a"], [("c", ["b"])])


def test_a_question_as_long_as_a_page_is_looked_up_by_a_few_of_its_words() -> None:
    alone, together = candidates(ALL, **{f"word{n}": 500 for n in range(400)})
    assert len(alone) == keyword._ALONE * keyword.CANDIDATES // 500
    assert len(together) == keyword._TOGETHER


def test_what_others_hold_costs_too() -> None:
    assert candidates(ALL, a=3_000, b=3_500) == (["a", "b"], [])
    assert candidates(HALF, a=3_000, b=3_500) == (["a"], [])


def test_a_question_of_common_words_alone_is_answered() -> None:
    assert candidates(ALL, a=300_000) == (["a"], [])
    assert candidates(ALL, a=11_000, b=12_000, c=12_000) == (["a"], [("c", ["b"])])
    assert candidates(ALL, a=50_000, b=60_000, c=70_000) == ([], [("b", ["a"]), ("c", ["a", "b"])])
    assert candidates(ALL, a=300_000, b=400_000) == (["a"], [])


def test_where_little_is_brought_up_the_next_word_is_taken_unless_it_is_everywhere() -> None:
    assert candidates(ALL, a=100, b=15_000) == (["a", "b"], [])
    assert candidates(ALL, a=100, b=300_000) == (["a"], [])


def test_before_the_planner_has_counted_anything() -> None:
    assert candidates(Reach(chunks=30_000, stored=0), a=1_000, b=12_000) == (["a"], [])

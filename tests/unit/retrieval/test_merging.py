"""Hits become passages: noise is left out, neighbours are joined."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid5

import pytest

from retrieval.hits import Hit, merge_neighbours
from retrieval.models import EmbeddingSpace
from retrieval.ranking import Candidate, Ranking
from retrieval.search import worth_showing

NAMESPACE = UUID(int=3)
DOCUMENT = "alpha beta gamma delta epsilon zeta"


def hit(index: int, start: int, end: int, score: float, *, document: str = "a", version: int = 1) -> Hit:
    return Hit(
        chunk_id=uuid5(NAMESPACE, f"{document}{version}{index}"),
        document_id=uuid5(NAMESPACE, document),
        version=version,
        collection_id=NAMESPACE,
        name="doc",
        warnings=(),
        index=index,
        page=None,
        page_end=None,
        start=start,
        end=end,
        text=DOCUMENT[start:end],
        heading="",
        score=score,
    )


def ranking(
    cosines: Sequence[float], *, mean: float = 0.0, spread: float = 0.0, words: float = 0.0, most: float = 0.0
) -> Ranking:
    found = [Candidate(uuid5(NAMESPACE, str(n)), cosine, words, cosine) for n, cosine in enumerate(cosines)]
    return Ranking(fused=tuple(found), mean=mean, spread=spread, most=most)


def test_overlapping_neighbours_are_joined_with_exact_offsets() -> None:
    second, first, far = hit(1, 11, 22, 0.9), hit(0, 0, 16, 0.8), hit(3, 31, 35, 0.7)
    passages = merge_neighbours([second, first, far])
    assert [(p.start, p.end, p.score) for p in passages] == [(0, 22, 0.9), (31, 35, 0.7)]
    assert all(DOCUMENT[p.start : p.end] == p.text for p in passages)


def test_only_two_are_joined_and_none_is_lost() -> None:
    hits = [hit(1, 6, 16, 0.9), hit(2, 11, 22, 0.8), hit(0, 0, 10, 0.7)]
    assert [(p.start, p.end) for p in merge_neighbours(hits)] == [(6, 22), (0, 10)]


def test_neighbours_of_other_documents_and_versions_stay_apart() -> None:
    hits = [hit(0, 0, 16, 0.9), hit(1, 11, 22, 0.8, document="b"), hit(1, 11, 23, 0.7, version=2)]
    assert len(merge_neighbours(hits)) == 3


def test_a_copy_of_a_text_is_not_shown_twice() -> None:
    hits = [hit(0, 0, 16, 0.9), hit(0, 0, 16, 0.8, document="copy"), hit(0, 0, 10, 0.7, document="b")]
    assert [p.score for p in merge_neighbours(hits)] == [0.9, 0.7]


def test_a_passage_tells_the_page_it_begins_on_and_the_page_it_ends_on() -> None:
    one = replace(hit(0, 0, 16, 0.9), page=3, page_end=3)
    two = replace(hit(1, 11, 22, 0.8), page=3, page_end=5)
    assert [(p.page, p.page_end) for p in merge_neighbours([one])] == [(3, None)]
    assert [(p.page, p.page_end) for p in merge_neighbours([two])] == [(3, 5)]
    assert [(p.page, p.page_end) for p in merge_neighbours([two, one])] == [(3, 5)]


def test_neighbours_without_overlap_stay_apart() -> None:
    assert len(merge_neighbours([hit(0, 0, 10, 0.9), hit(1, 11, 16, 0.8)])) == 2


@pytest.mark.parametrize(
    ("scores", "mean", "spread", "chunks", "kept"),
    [
        # Near: shown although everything in reach is near.
        ([0.90, 0.87, 0.83], 0.80, 0.05, 500, [0.90, 0.87]),
        # Far, as across two languages, but far above the rest: shown.
        ([0.74, 0.73, 0.64], 0.60, 0.05, 500, [0.74]),
        # Neither near nor above the rest.
        ([0.81, 0.80], 0.75, 0.05, 500, []),
        # Too few to tell noise by its spread: only the floor counts.
        ([0.86, 0.76, 0.74], 0.80, 0.05, 3, [0.86, 0.76]),
        ([0.74], 0.74, 0.0, 1, []),
        ([], 0.0, 0.0, 500, []),
    ],
)
def test_noise_is_not_shown(
    scores: list[float], mean: float, spread: float, chunks: int, kept: list[float]
) -> None:
    space = EmbeddingSpace(model="multilingual-e5-small", dimension=384)
    shown = worth_showing(ranking(scores, mean=mean, spread=spread), space, chunks=chunks)
    assert [item.cosine for item in shown] == kept


def test_a_measured_floor_of_the_space_comes_first() -> None:
    space = EmbeddingSpace(model="multilingual-e5-small", dimension=384, min_similarity=0.4)
    assert len(worth_showing(ranking([0.5]), space, chunks=1)) == 1


@pytest.mark.parametrize(("words", "kept"), [(8.0, 1), (6.0, 0), (0.0, 0)])
def test_what_says_the_question_s_words_is_shown_however_far_its_meaning(words: float, kept: int) -> None:
    space = EmbeddingSpace(model="multilingual-e5-small", dimension=384)
    found = ranking([0.7], mean=0.69, spread=0.05, words=words, most=10.0)
    assert len(worth_showing(found, space, chunks=500)) == kept

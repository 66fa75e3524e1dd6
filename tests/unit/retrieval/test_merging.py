"""Hits become passages: noise is left out, neighbours are joined."""

from uuid import UUID, uuid5

import pytest

from retrieval.models import EmbeddingSpace
from retrieval.nearest import Found, Hit
from retrieval.search import merge_neighbours, worth_showing

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
        start=start,
        end=end,
        text=DOCUMENT[start:end],
        heading="",
        score=score,
    )


def test_overlapping_neighbours_are_joined_with_exact_offsets() -> None:
    second, first, far = hit(1, 11, 22, 0.9), hit(0, 0, 16, 0.8), hit(3, 31, 35, 0.7)
    passages = merge_neighbours([second, first, far])
    assert [(p.start, p.end, p.score) for p in passages] == [(0, 22, 0.9), (31, 35, 0.7)]
    assert all(DOCUMENT[p.start : p.end] == p.text for p in passages)


def test_only_two_are_joined_and_none_is_lost() -> None:
    hits = [hit(1, 6, 16, 0.9), hit(2, 11, 22, 0.8), hit(0, 0, 10, 0.7)]
    assert [(p.start, p.end) for p in merge_neighbours(hits)] == [(6, 22), (0, 10)]


def test_neighbours_of_other_documents_and_versions_stay_apart() -> None:
    hits = [hit(0, 0, 16, 0.9), hit(1, 11, 22, 0.8, document="b"), hit(1, 11, 22, 0.7, version=2)]
    assert len(merge_neighbours(hits)) == 3


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
    found = Found(tuple(hit(i * 2, 0, 5, score) for i, score in enumerate(scores)), mean, spread)
    space = EmbeddingSpace(model="multilingual-e5-small", dimension=384)
    assert [h.score for h in worth_showing(found, space, chunks=chunks)] == kept


def test_a_measured_floor_of_the_space_comes_first() -> None:
    found = Found((hit(0, 0, 5, 0.5),))
    space = EmbeddingSpace(model="multilingual-e5-small", dimension=384, min_similarity=0.4)
    assert len(worth_showing(found, space, chunks=1)) == 1

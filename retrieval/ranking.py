"""Both legs at once, and one order of what they found."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from retrieval.fusion import FOLLOW, fused, leading, trust
from retrieval.keyword import Question, matching, question_of, scores
from retrieval.models import EmbeddingSpace
from retrieval.nearest import Found, beside, nearest, similarities
from retrieval.ports import embed, run_db
from retrieval.scope import Reach, Scope
from retrieval.vectors import unit_vectors, vector_text

DEPTH = 100
"""Candidates each leg brings: more changed no figure, fewer lost some."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that a leg found, with both legs' exact scores."""

    chunk_id: UUID
    cosine: float
    words: float
    """BM25; 0 when it holds none of the question's words."""
    score: float
    """The mix of both, only comparable within one search."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the legs found."""

    vector: tuple[tuple[UUID, float], ...] = ()
    keyword: tuple[tuple[UUID, float], ...] = ()
    fused: tuple[Candidate, ...] = ()
    """Everything either leg found, best first."""
    mean: float = 0.0
    """Cosine of just anything in reach."""
    spread: float = 0.0
    most: float = 0.0
    """BM25 of a text that says every word of the question once."""


async def rank(  # noqa: PLR0913 - a search is what it is
    query: str,
    *,
    scope: Scope,
    within: Reach,
    space: EmbeddingSpace,
    payer: object,
    depth: int = DEPTH,
    vector: str | None = None,
) -> Ranking:
    """Search with both legs in parallel; `vector` is the question's, where it is known already.

    Errors: EmbeddingUnavailable, what the embedder raises.
    """

    async def by_meaning() -> tuple[str, Found]:
        asked = vector or await _vector(query, space, payer)
        return asked, await run_db()(nearest, scope, space, asked, limit=depth, within=within)

    (asked, found), (question, ranked) = await asyncio.gather(
        by_meaning(), _by_words(query, scope, within, depth)
    )
    ranking: Ranking = await run_db()(_join, space, asked, found, question, ranked)
    return ranking


async def _vector(query: str, space: EmbeddingSpace, payer: object) -> str:
    answer = await embed([query], space=space, role="query", payer=payer)
    return vector_text(unit_vectors(answer, texts=1, dimension=space.dimension)[0])


async def _by_words(
    query: str, scope: Scope, within: Reach, depth: int
) -> tuple[Question, Sequence[tuple[UUID, float]]]:
    found: tuple[Question, Sequence[tuple[UUID, float]]] = await run_db()(
        _words_found, query, scope, within, depth
    )
    return found


def _words_found(
    query: str, scope: Scope, within: Reach, depth: int
) -> tuple[Question, list[tuple[UUID, float]]]:
    question = question_of(query, scope)
    return question, matching(question, scope, within, limit=depth)


def _join(
    space: EmbeddingSpace,
    vector: str,
    found: Found,
    question: Question,
    ranked: Sequence[tuple[UUID, float]],
) -> Ranking:
    """Each candidate gets the score of the leg that did not find it too, so that nothing is taken for zero."""
    cosines, words = dict(found.ranked), dict(ranked)
    cosines |= similarities(space, vector, [chunk for chunk in words if chunk not in cosines])
    words |= scores(question, [chunk for chunk in cosines if chunk not in words])
    mixed = tuple(
        Candidate(chunk, cosines[chunk], words.get(chunk, 0.0), score)
        for chunk, score in _ordered(space, cosines, words, question)
    )
    return Ranking(found.ranked, tuple(ranked), mixed, found.mean, found.spread, question.most)


def _ordered(
    space: EmbeddingSpace, cosines: dict[UUID, float], words: dict[UUID, float], question: Question
) -> list[tuple[UUID, float]]:
    """The mix of both legs, looked at twice: the second time what is near to the first hits comes nearer.

    Where the words say little, neither they nor the hits that they led to are followed far.
    """
    trusted = trust(words, question.said)
    order = fused(cosines, words, trusted=trusted)
    if not trusted:
        return order
    near = beside(space, leading(order), list(cosines))
    moved = {chunk: cosine + FOLLOW * trusted * near.get(chunk, 0.0) for chunk, cosine in cosines.items()}
    return fused(moved, words, trusted=trusted)

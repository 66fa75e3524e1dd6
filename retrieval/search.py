"""From a question to passages: rank what the viewer may read, leave out what is only noise, put neighbours together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from uuid import UUID

from retrieval.hits import Hit, hits, merge_neighbours
from retrieval.models import LEVELS, EmbeddingSpace
from retrieval.ports import reranker, run_db
from retrieval.ranking import DEPTH, Candidate, Ranking, rank
from retrieval.scope import Reach, Scope, reach, scope_of
from retrieval.selectors import space_active
from retrieval.types import Filters, Passage, Reranker, Viewer

MAX_LIMIT = 200
RERANKED = 30
"""Candidates a reranker is given: its time is counted in texts."""
STANDS_OUT = 2.7
"""Standard deviations by which the best passage must lie above the mean of all in reach, unless it is surely near."""
STAYS = 1.2
"""The same for every further passage."""
NAMES_IT = 0.7
"""Share of the question's words, by their weight, from which a passage is shown however near it is in meaning."""
_ENOUGH = 50
"""Chunks in reach from which mean and spread say something."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Cosines of one model, as measured."""

    floor: float
    """Below it a passage is noise."""
    sure: float
    """From it the best passage is shown even if it does not stand out: in a collection on one subject none does."""


# 200 questions in each of 16 pairs of question and document language (XQuAD en, de, ru, zh), half without an answer
# in the collection: 99 % of the right passages are kept within a language and 90 % across two; of the questions
# without an answer 45 and 60 % find nothing.
_MODELS = {"multilingual-e5-small": _Measured(floor=0.75, sure=0.82)}
_UNKNOWN = _Measured(floor=-1.0, sure=1.0)


async def search(
    *,
    query: str,
    viewer: Viewer,
    collection_ids: Sequence[UUID] | None,
    limit: int,
    payer: object,
    filters: Filters | None = None,
) -> list[Passage]:
    """The best passages, best first; empty when nothing is similar enough, or says enough of the question's words.

    `collection_ids`: None searches everything readable, an empty sequence nothing.
    Errors: NotFound naming an unknown or unreadable collection, EmbeddingUnavailable, what the embedder raises.
    """
    if not query.strip() or limit < 1 or (collection_ids is not None and not collection_ids):
        return []
    limit = min(limit, MAX_LIMIT)
    space, scope, within = await run_db()(prepare, scope_of(viewer, collection_ids, filters))
    if space is None or within.chunks == 0:
        # Known before anything is paid for.
        return []
    ranking = await rank(
        query, scope=scope, within=within, space=space, payer=payer, depth=max(DEPTH, 2 * limit)
    )
    chosen = worth_showing(ranking, space, chunks=within.chunks)
    found, rerank = await run_db()(_looked_up, scope, chosen, limit)
    return merge_neighbours((await reranked(query, found, rerank=rerank, payer=payer))[:limit])


def _looked_up(scope: Scope, chosen: list[Candidate], limit: int) -> tuple[list[Hit], Reranker | None]:
    """As many as are wanted, or as the reranker is given to choose from."""
    rerank = reranker()
    first = max(limit, RERANKED) if rerank else limit
    return hits(scope, {item.chunk_id: _shown(item.score) for item in chosen[:first]}), rerank


def prepare(scope: Scope) -> tuple[EmbeddingSpace | None, Scope, Reach]:
    """What a search needs to know before it begins. Errors: NotFound."""
    return space_active(), *reach(scope)


def worth_showing(ranking: Ranking, space: EmbeddingSpace, *, chunks: int) -> list[Candidate]:
    """The candidates that are more than noise, best first.

    Near in meaning: when the best one is surely near or stands out from all in reach, those that stand out with it.
    By its words: whatever says most of the question, such as a name or a number that no vector knows.
    """
    model = _MODELS.get(space.model, _UNKNOWN)
    least = model.floor if space.min_similarity is None else space.min_similarity
    best = max((item.cosine for item in ranking.fused), default=0.0)
    if chunks >= _ENOUGH and ranking.spread > 0:
        if best < model.sure and best < ranking.mean + STANDS_OUT * ranking.spread:
            least = float("inf")
        else:
            least = max(min(least, best), ranking.mean + STAYS * ranking.spread)
    named = NAMES_IT * ranking.most or float("inf")
    return [item for item in ranking.fused if item.cosine >= least or item.words >= named]


async def reranked(query: str, found: Sequence[Hit], *, rerank: Reranker | None, payer: object) -> list[Hit]:
    """The hits in the order of the reranker, or as they came where none is set up or it does not answer."""
    if rerank is None or len(found) < 2:
        return list(found)
    texts = [f"{hit.heading}\n{hit.text}" if hit.heading else hit.text for hit in found]
    level = max((hit.level for hit in found), key=LEVELS.index)
    answer = await rerank(query, texts, payer=payer, level=level)
    if answer is None:
        return list(found)
    best = sorted(zip(answer.scores, found, strict=True), key=lambda pair: (-pair[0], str(pair[1].chunk_id)))
    return [replace(hit, score=_shown(score)) for score, hit in best]


def _shown(score: float) -> float:
    """Between 0 and 1, in the same order."""
    return 1 / (1 + exp(-max(-500.0, min(500.0, score))))

"""From a question to passages: embed it, rank what the viewer may read, leave out what is only noise."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from uuid_utils.compat import uuid7

from retrieval.models import EmbeddingSpace
from retrieval.nearest import Found, Hit, Reach, Scope, nearest, reach, scope_of
from retrieval.ports import embed, run_db
from retrieval.selectors import space_active
from retrieval.types import Passage, Viewer
from retrieval.vectors import unit_vectors, vector_text

MAX_LIMIT = 200
STANDS_OUT = 2.7
"""Standard deviations by which the best passage must lie above the mean of all in reach, unless it is surely near."""
STAYS = 1.2
"""The same for every further passage."""
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
    *, query: str, viewer: Viewer, collection_ids: Sequence[UUID] | None, limit: int, payer: object
) -> list[Passage]:
    """The best passages, best first; empty when nothing is similar enough to be worth showing.

    `collection_ids`: None searches everything readable, an empty sequence nothing.
    Errors: NotFound naming an unknown or unreadable collection, EmbeddingUnavailable, what the embedder raises.
    """
    if not query.strip() or limit < 1 or (collection_ids is not None and not collection_ids):
        return []
    scope = scope_of(viewer, collection_ids)
    space, within = await run_db()(_prepare, scope)
    if space is None or within.chunks == 0:
        # Known before anything is paid for.
        return []
    answer = await embed([query], space=space, role="query", payer=payer)
    vector = vector_text(unit_vectors(answer, texts=1, dimension=space.dimension)[0])
    found = await run_db()(nearest, scope, space, vector, limit=min(limit, MAX_LIMIT), within=within)
    return merge_neighbours(worth_showing(found, space, chunks=within.chunks))


def worth_showing(found: Found, space: EmbeddingSpace, *, chunks: int) -> list[Hit]:
    """The hits that are more than noise, best first; none when even the best one neither is near nor stands out."""
    if not found.hits:
        return []
    model = _MODELS.get(space.model, _UNKNOWN)
    least = model.floor if space.min_similarity is None else space.min_similarity
    best = found.hits[0].score
    if chunks >= _ENOUGH and found.spread > 0:
        if best < model.sure and best < found.mean + STANDS_OUT * found.spread:
            return []
        least = max(min(least, best), found.mean + STAYS * found.spread)
    return [hit for hit in found.hits if hit.score >= least]


def _prepare(scope: Scope) -> tuple[EmbeddingSpace | None, Reach]:
    return space_active(), reach(scope)


def merge_neighbours(hits: Sequence[Hit]) -> list[Passage]:
    """Passages of hits given best first; two hits that overlap in their document become one passage.

    At most two: longer ones would crowd other documents out of the prompt.
    """
    by_place = {(hit.document_id, hit.version, hit.index): hit for hit in hits}
    passages: list[Passage] = []
    used: set[UUID] = set()
    for hit in hits:
        if hit.chunk_id in used:
            continue
        used.add(hit.chunk_id)
        for step in (1, -1):
            other = by_place.get((hit.document_id, hit.version, hit.index + step))
            if other is None or other.chunk_id in used:
                continue
            first, second = (hit, other) if step == 1 else (other, hit)
            if first.start <= second.start <= first.end < second.end:
                used.add(other.chunk_id)
                passages.append(_joined(hit, first, second))
                break
        else:
            passages.append(_passage(hit))
    return passages


def _joined(best: Hit, first: Hit, second: Hit) -> Passage:
    text = first.text + second.text[first.end - second.start :]
    heading = first.heading if first.heading == second.heading else ""
    whole = replace(best, page=first.page, start=first.start, end=second.end, text=text, heading=heading)
    return _passage(whole)


def _passage(hit: Hit) -> Passage:
    return Passage(
        id=uuid7(),
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        document_version=hit.version,
        collection_id=hit.collection_id,
        title=hit.name,
        page=hit.page,
        start=hit.start,
        end=hit.end,
        text=hit.text,
        sha256=hashlib.sha256(hit.text.encode()).hexdigest(),
        score=hit.score,
        heading=hit.heading,
        warnings=hit.warnings,
    )

"""Retrieval's exam: how well each leg finds what a test collection says should be found, on the path that serves.

The documents are chunked, stored and indexed like any others, in a collection of their own that nobody else can read
and that is removed afterwards; the questions go through `retrieval.ranking.rank`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from uuid_utils.compat import uuid7

from retrieval.beir import Exam, Item
from retrieval.chunking import ChunkCut, chunk
from retrieval.drafts import content_hash
from retrieval.hits import Hit, hits
from retrieval.keyword_index import document_words_write, words_fold
from retrieval.models import Chunk, ChunkVector, Collection, Document, EmbeddingSpace, Grant, Status
from retrieval.parsing.blocks import Block, Page
from retrieval.ports import reranker, run_db
from retrieval.ranking import Ranking, rank
from retrieval.scope import Reach, Scope, reach, scope_of
from retrieval.search import RERANKED, reranked
from retrieval.types import Reranker, Viewer
from retrieval.vector_cache import VectorCache
from retrieval.vectors import vector_text

LEGS = ("vector", "keyword", "fused", "reranked")
DEEPEST = 100
"""Documents a leg may name for a question."""
_CHUNKS = 300
"""Chunks taken for them: a document may have several."""
_AT_ONCE = 200

Run = dict[str, dict[str, float]]
"""Score by document by question."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where an exam takes place."""

    scope: Scope
    within: Reach
    space: EmbeddingSpace
    names: Mapping[UUID, str]
    """The exam's document by chunk."""


def page_of(item: Item) -> Page:
    """A document of an exam as a parser would have read it: the title is its heading."""
    title = " ".join(item.title.replace("_", " ").split())
    if not title:
        blocks = (Block("paragraph", 0, len(item.text)),) if item.text else ()
        return Page(1, item.text, blocks)
    whole = f"{title}\n\n{item.text}" if item.text else title
    begin = len(title) + 2
    body = (Block("paragraph", begin, len(whole), (title,)),) if item.text else ()
    return Page(1, whole, (Block("heading", 0, len(title), (title,)), *body))


def cuts_of(exam: Exam) -> dict[str, list[ChunkCut]]:
    """Chunks by document; a document without any text has none."""
    return {item.id: chunk([page_of(item)]) for item in exam.documents}


@contextmanager
def room_for(exam: Exam, space: EmbeddingSpace, vectors: Mapping[str, Sequence[float]]) -> Iterator[Room]:
    """Store the exam's documents, and remove them in the end. `vectors` by text."""
    principal = f"user:{uuid7()}"
    collection = Collection.objects.create(
        team_id=uuid7(), name=f"exam {exam.name} {uuid7()}"[:200], created_by=principal, level="public"
    )
    try:
        Grant.objects.create(
            team_id=collection.team_id,
            collection=collection,
            principal=principal,
            verb="read",
            created_by=principal,
        )
        names: dict[UUID, str] = {}
        whole = iter(cuts_of(exam).items())
        while part := list(islice(whole, _AT_ONCE)):
            with transaction.atomic():
                names |= _stored(collection, space, part, vectors)
            # Each document asks for the mean length so far: few differences are quickly added up.
            words_fold()
        scope, within = reach(scope_of(Viewer(frozenset({principal})), [collection.pk]))
        yield Room(scope, within, space, names)
    finally:
        with transaction.atomic():
            ChunkVector.objects.filter(collection_id=collection.pk).delete()
            Chunk.objects.filter(collection=collection).delete()
            collection.delete()
        words_fold()


def _stored(
    collection: Collection,
    space: EmbeddingSpace,
    part: Sequence[tuple[str, list[ChunkCut]]],
    vectors: Mapping[str, Sequence[float]],
) -> dict[UUID, str]:
    rows = [_document(collection, name, cuts) for name, cuts in part]
    Document.objects.bulk_create(rows)
    chunks = [_chunk(row, cut) for row, (_, cuts) in zip(rows, part, strict=True) for cut in cuts]
    Chunk.objects.bulk_create(chunks)
    texts = [cut.embedded_text for _, cuts in part for cut in cuts]
    ChunkVector.objects.bulk_create(
        [
            ChunkVector(
                chunk_id=row.pk,
                space=space,
                team_id=collection.team_id,
                collection_id=collection.pk,
                document_id=row.document_id,
                embedding=vectors[text],
            )
            for row, text in zip(chunks, texts, strict=True)
        ]
    )
    for row in rows:
        row.language = document_words_write(row.pk, collection.pk)
    Document.objects.bulk_update(rows, ["language"])
    Collection.objects.filter(pk=collection.pk).update(chunk_count=F("chunk_count") + len(chunks))
    names = {row.pk: name for row, (name, _) in zip(rows, part, strict=True)}
    return {row.pk: names[row.document_id] for row in chunks}


def _document(collection: Collection, name: str, cuts: Sequence[ChunkCut]) -> Document:
    digest = hashlib.sha256(f"{collection.pk}{name}".encode()).hexdigest()
    return Document(
        team_id=collection.team_id,
        collection=collection,
        name=name[:200],
        sha256=digest,
        size=0,
        serving_version=1,
        created_by=collection.created_by,
        status=Status.READY,
        ready_at=timezone.now(),
        chunk_count=len(cuts),
    )


def _chunk(row: Document, cut: ChunkCut) -> Chunk:
    return Chunk(
        team_id=row.team_id,
        collection_id=row.collection_id,
        document=row,
        version=1,
        index=cut.index,
        page=None,
        start=cut.start,
        end=cut.end,
        text=cut.text,
        heading=cut.heading,
        tokens=cut.tokens,
        content_hash=content_hash(cut.embedded_text),
    )


async def runs(exam: Exam, room: Room, cache: VectorCache, *, legs: Sequence[str] = LEGS) -> dict[str, Run]:
    """By leg: what it answers to each question. `reranked` only where a reranker is set up.

    Errors: what the embedder and the reranker raise.
    """
    rerank: Reranker | None = await run_db()(reranker)
    asked = [leg for leg in legs if leg != "reranked" or rerank]
    found: dict[str, Run] = {leg: {} for leg in asked}
    questions = list(exam.questions.items())
    itself = {item.id: item.text for item in exam.documents if item.id in exam.questions}
    vectors = await cache.vectors([text for _, text in questions], role="query")
    for (key, text), vector in zip(questions, vectors, strict=True):
        ranking = await rank(
            text,
            scope=room.scope,
            within=room.within,
            space=room.space,
            payer={"team_id": None},
            depth=_CHUNKS,
            vector=vector_text(vector),
        )
        for leg in asked:
            best = _best(await _answer(leg, text, ranking, room, rerank), room)
            # A question that is a document of the collection itself (ArguAna, Quora) is no answer to itself.
            if itself.get(key) == text:
                best.pop(key, None)
            found[leg][key] = best
    return found


async def _answer(
    leg: str, text: str, ranking: Ranking, room: Room, rerank: Reranker | None
) -> Iterable[tuple[UUID, float]]:
    if leg == "vector":
        return ranking.vector
    if leg == "keyword":
        return ranking.keyword
    fused = [(item.chunk_id, item.score) for item in ranking.fused]
    if leg == "fused":
        return fused
    best: list[Hit] = await run_db()(hits, room.scope, dict(fused[:RERANKED]))
    order = [hit.chunk_id for hit in await reranked(text, best, rerank=rerank, payer={"team_id": None})]
    return [(chunk_id, -float(place)) for place, chunk_id in enumerate(order)]


def _best(scored: Iterable[tuple[UUID, float]], room: Room) -> dict[str, float]:
    """A document is as good as its best chunk."""
    best: dict[str, float] = {}
    for chunk_id, score in scored:
        name = room.names[chunk_id]
        best[name] = max(best.get(name, float("-inf")), score)
    return dict(sorted(best.items(), key=lambda item: -item[1])[:DEEPEST])

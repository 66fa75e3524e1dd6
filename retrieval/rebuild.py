"""Another embedding model: its vectors are built beside those in use, then it takes over in one transaction.

Search reads the active space throughout. The one before stays on standby, so that going back only embeds what came in
since. A build that is interrupted goes on where it stood: a chunk is missing in the space or it is not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connection, transaction

from retrieval.batches import batches
from retrieval.chunking import embedded_text
from retrieval.drafts import content_hash
from retrieval.errors import Conflict, EmbeddingMismatch
from retrieval.models import EmbeddingSpace
from retrieval.ports import embed
from retrieval.spaces import space_ensure, spaces_lock
from retrieval.vectors import Matrix, unit_vectors, vector_text

State = EmbeddingSpace.State
_WINDOW = 1000
"""Chunks looked at at once; batches for the embedder are cut from them."""

_MISSING = """
SELECT c.id, c.team_id, col.level, c.heading, c.text, c.tokens, c.content_hash
FROM retrieval_chunk c JOIN retrieval_collection col ON col.id = c.collection_id
WHERE c.id > %(after)s AND NOT EXISTS (
    SELECT FROM retrieval_chunkvector v WHERE v.chunk_id = c.id AND v.space_id = %(space)s)
ORDER BY c.id LIMIT %(limit)s
"""
# The same text of the same team is embedded once: every chunk that has it and lacks the vector gets it.
_KEEP = """
INSERT INTO retrieval_chunkvector (chunk_id, space_id, team_id, collection_id, document_id, embedding, indexed)
SELECT c.id, %(space)s, c.team_id, c.collection_id, c.document_id, t.vector::halfvec, true
FROM unnest(%(hashes)s::bytea[], %(vectors)s::text[]) AS t(hash, vector)
JOIN retrieval_chunk c ON c.team_id = %(team)s AND c.content_hash = t.hash
ON CONFLICT DO NOTHING
"""
_COUNT = """
SELECT (SELECT count(*) FROM retrieval_chunk),
       (SELECT count(*) FROM retrieval_chunkvector v WHERE v.space_id = %s)
"""


@dataclass(frozen=True, slots=True)
class _Missing:
    chunk_id: UUID
    team_id: UUID
    level: str
    text: str
    tokens: int
    content_hash: bytes


def space_begin(*, model: str, dimension: int, query_prefix: str, passage_prefix: str) -> EmbeddingSpace:
    """The space that is to take over, with its index; one that stands by or is half built is taken up again.

    Errors: Conflict when this model is the one in use, or another one is being built.
    """
    with transaction.atomic():
        spaces_lock(alone=True)
        known = EmbeddingSpace.objects.filter(model=model, dimension=dimension).first()
        if known is not None and known.state == State.ACTIVE:
            raise Conflict(f"{model} is the model in use already.")
        busy = EmbeddingSpace.objects.filter(state=State.BUILDING).first()
        if busy is not None and busy != known:
            raise Conflict(
                f"{busy.model} is being built. Let it end, or give it up with --drop {busy.model}."
            )
        return space_ensure(
            model=model,
            dimension=dimension,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            state=State.BUILDING,
        )


def space_back() -> EmbeddingSpace:
    """The space that was active before, to be completed and switched to. Errors: Conflict when none stands by."""
    with transaction.atomic():
        spaces_lock(alone=True)
        space = EmbeddingSpace.objects.filter(state=State.STANDBY).order_by("-pk").first()
        if space is None:
            raise Conflict("No earlier embedding model stands by, so there is nothing to go back to.")
        space.state = State.BUILDING
        space.save(update_fields=["state"])
    return space


def space_progress(space: EmbeddingSpace) -> tuple[int, int]:
    """(chunks with a vector in this space, chunks)."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [space.pk])
        total, done = cursor.fetchone()
    return done, total


def space_fill(space: EmbeddingSpace, *, go_on: Callable[[], bool] = lambda: True) -> bool:
    """Embed chunks that have no vector in this space, until none is left (True) or `go_on()` says no (False).

    Each batch is kept as it comes. Errors: EmbeddingUnavailable, EmbeddingMismatch, whatever the embedder raises.
    """
    after = UUID(int=0)
    while window := _missing(space, after):
        for batch in _batches(window):
            if not go_on():
                return False
            _keep(space, batch, async_to_sync(_vectors)(space, batch))
        after = window[-1].chunk_id
    return True


def space_switch(space: EmbeddingSpace) -> bool:
    """Let this space serve from now on; the one before stands by. False when chunks without a vector came in.

    Commits of documents wait for this transaction, so nothing can slip in between the check and the switch.
    """
    with transaction.atomic():
        spaces_lock(alone=True)
        if _missing(space, UUID(int=0), limit=1):
            return False
        EmbeddingSpace.objects.filter(state=State.ACTIVE).exclude(pk=space.pk).update(state=State.STANDBY)
        EmbeddingSpace.objects.filter(pk=space.pk).update(state=State.ACTIVE)
    return True


def space_drop(space: EmbeddingSpace) -> int:
    """Give a space up: its vectors and its index go. Returns how many. Errors: Conflict for the one in use."""
    with transaction.atomic():
        spaces_lock(alone=True)
        if EmbeddingSpace.objects.get(pk=space.pk).state == State.ACTIVE:
            raise Conflict(f"{space.model} is the model in use. Build and switch to another one first.")
        with connection.cursor() as cursor:
            cursor.execute("SELECT retrieval_space_drop(%s)", [space.pk])
            removed = int(cursor.fetchone()[0])
        EmbeddingSpace.objects.filter(pk=space.pk).update(state=State.RETIRED)
    return removed


def spaces_advance(*, go_on: Callable[[], bool]) -> str:
    """Work a while on the space that is being built, and switch to it when it is whole. Returns its state, or ''."""
    space = EmbeddingSpace.objects.filter(state=State.BUILDING).first()
    if space is None or not _alone():
        return ""
    try:
        while space_fill(space, go_on=go_on) and not space_switch(space):
            continue
    finally:
        _let_go()
    return EmbeddingSpace.objects.values_list("state", flat=True).get(pk=space.pk)


def _alone() -> bool:
    """Whether nobody else fills the space; held by this connection until `_let_go`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended('retrieval.rebuild', 0))")
        return bool(cursor.fetchone()[0])


def _let_go() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended('retrieval.rebuild', 0))")


def _missing(space: EmbeddingSpace, after: UUID, *, limit: int = _WINDOW) -> list[_Missing]:
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, {"space": space.pk, "after": after, "limit": limit})
        rows = cursor.fetchall()
    return [_one(row) for row in rows]


def _one(row: Sequence[Any]) -> _Missing:
    """Errors: EmbeddingMismatch when the stored text is not the one that was embedded."""
    chunk_id, team_id, level, heading, text, tokens, key = row
    whole = embedded_text(heading, text)
    if content_hash(whole) != bytes(key):
        raise EmbeddingMismatch(
            f"The text of chunk {chunk_id} is not the one that was embedded. Read its document again."
        )
    return _Missing(chunk_id, team_id, level, whole, tokens, bytes(key))


def _batches(window: Sequence[_Missing]) -> Iterator[list[_Missing]]:
    """Of one payer and one privacy level, each text once."""
    by_payer: dict[tuple[UUID, str], dict[bytes, _Missing]] = {}
    for item in window:
        by_payer.setdefault((item.team_id, item.level), {}).setdefault(item.content_hash, item)
    for texts in by_payer.values():
        yield from batches(texts.values())


async def _vectors(space: EmbeddingSpace, batch: Sequence[_Missing]) -> Matrix:
    payer = {"team_id": batch[0].team_id, "kind": "rebuild", "level": batch[0].level}
    answer = await embed([item.text for item in batch], space=space, role="passage", payer=payer)
    return unit_vectors(answer, texts=len(batch), dimension=space.dimension)


def _keep(space: EmbeddingSpace, batch: Sequence[_Missing], matrix: Matrix) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            _KEEP,
            {
                "space": space.pk,
                "team": batch[0].team_id,
                "hashes": [item.content_hash for item in batch],
                "vectors": [vector_text(row) for row in matrix],
            },
        )

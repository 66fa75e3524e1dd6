"""Vectors of a version under way: reused where the same text was embedded before, bought once where not."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from retrieval.batches import batches
from retrieval.chunking import ChunkCut
from retrieval.copying import halves, rows_copy
from retrieval.lease import Lease
from retrieval.models import EmbeddingDraft, EmbeddingSpace
from retrieval.patience import tries
from retrieval.ports import embed, run_db
from retrieval.vectors import Matrix, unit_vectors

IN_FLIGHT = 3
"""One is computed, one waits at the server so that it is never idle, one is paid for and written down."""

_COLUMNS = ("id", "created_at", "team_id", "document_id", "space_id", "content_hash", "embedding")
_REUSE = """
INSERT INTO retrieval_embeddingdraft (id, created_at, team_id, document_id, space_id, content_hash, embedding)
SELECT DISTINCT ON (c.content_hash)
    gen_random_uuid(), now(), %(team)s, %(document)s, v.space_id, c.content_hash, v.embedding
FROM retrieval_chunk c JOIN retrieval_chunkvector v ON v.chunk_id = c.id AND v.space_id = %(space)s
WHERE c.team_id = %(team)s AND c.content_hash = ANY(%(hashes)s)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class _Text:
    content_hash: bytes
    text: str
    tokens: int


def content_hash(text: str) -> bytes:
    """Key of a text in drafts and chunks."""
    return hashlib.sha256(text.encode()).digest()


def drafts_fill(lease: Lease, space: EmbeddingSpace, cuts: Sequence[ChunkCut]) -> None:
    """Have a draft for every chunk's text when this returns.

    Texts the same team has embedded in this space are copied inside the database; the others are sent to the
    embedder in batches, each kept as soon as it came. Errors: LeaseLost, whatever the embedder raises.
    """
    texts = {
        (key := content_hash(cut.embedded_text)): _Text(key, cut.embedded_text, cut.tokens) for cut in cuts
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # First the lease, as with every write: of a document that is gone or ready no draft stays behind.
        lease.write()
        cursor.execute(
            _REUSE,
            {"team": lease.team_id, "document": lease.document_id, "space": space.pk, "hashes": list(texts)},
        )
    have = EmbeddingDraft.objects.filter(document_id=lease.document_id, space=space).values_list(
        "content_hash", flat=True
    )
    known = {bytes(key) for key in have} & set(texts)
    missing = [text for key, text in texts.items() if key not in known]
    done = len(cuts) - len(missing)
    lease.write(progress_done=max(0, done))
    if missing:
        async_to_sync(_Buying(lease, space, done).run)(missing)


class _Buying:
    """Sends the missing texts to the embedder, a few batches in flight."""

    def __init__(self, lease: Lease, space: EmbeddingSpace, done: int) -> None:
        self._lease = lease
        self._space = space
        self._done = done
        self._stopped = False

    async def run(self, texts: Sequence[_Text]) -> None:
        # One iterator for all: each takes the next batch when it is done with its own.
        rest = batches(texts)
        ends = await asyncio.gather(*(self._work(rest) for _ in range(IN_FLIGHT)), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end

    async def _work(self, rest: Iterator[list[_Text]]) -> None:
        """Batch after batch until one fails anywhere; one that is at the server then is still kept: it is paid for."""
        whole = False
        try:
            for batch in rest:
                matrix = await self._vectors(batch)
                # Counted here: what is written there may be tried twice.
                self._done += len(batch)
                await run_db()(self._keep, batch, matrix, self._done)
                if self._stopped:
                    return
            whole = True
        finally:
            self._stopped = self._stopped or not whole

    async def _vectors(self, batch: list[_Text]) -> Matrix:
        for patience in tries():
            with patience:
                return await self._ask(batch)
            await run_db()(self._lease.write)
            await asyncio.sleep(patience.seconds)
        return await self._ask(batch)

    async def _ask(self, batch: list[_Text]) -> Matrix:
        payer = {
            "team_id": self._lease.team_id,
            "kind": "ingest",
            "document_id": self._lease.document_id,
            "collection_id": self._lease.collection_id,
            "level": self._lease.level,
        }
        answer = await embed([item.text for item in batch], space=self._space, role="passage", payer=payer)
        return unit_vectors(answer, texts=len(batch), dimension=self._space.dimension)

    def _keep(self, batch: list[_Text], matrix: Matrix, done: int) -> None:
        now = timezone.now()
        with transaction.atomic():
            # First the lease: a worker that lost it writes nothing more, and nobody takes it over before the commit.
            self._lease.write(progress_done=done, attempts=1)
            rows_copy(
                "retrieval_embeddingdraft",
                _COLUMNS,
                (
                    (
                        uuid7(),
                        now,
                        self._lease.team_id,
                        self._lease.document_id,
                        self._space.pk,
                        item.content_hash,
                        vector,
                    )
                    for item, vector in zip(batch, halves(matrix), strict=True)
                ),
            )

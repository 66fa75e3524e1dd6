"""The one transaction in which a new version begins to serve."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from uuid_utils.compat import uuid7

from retrieval.chunking import ChunkCut
from retrieval.drafts import content_hash
from retrieval.errors import LeaseLost, RetrievalError
from retrieval.keyword_index import document_words_write
from retrieval.lease import Lease
from retrieval.models import Chunk, Collection, Document, DocumentText, EmbeddingDraft, EmbeddingSpace, Status
from retrieval.parsing import PAGE_BREAK, Reading
from retrieval.selectors import space_active
from retrieval.spaces import spaces_lock

_ROWS = 1000
_COMMIT = timedelta(minutes=15)
"""A long document's index entries take their time. The row is locked meanwhile, so nothing else can renew the lease."""

_INSERT = """
INSERT INTO retrieval_chunk (id, created_at, team_id, collection_id, document_id, version,
    index, page, start, "end", text, heading, tokens, content_hash)
SELECT c.id, now(), %(team)s, %(collection)s, %(document)s, %(version)s,
    c.index, c.page, c.start, c.stop, c.text, c.heading, c.tokens, c.hash
FROM unnest(%(ids)s::uuid[], %(indexes)s::int[], %(pages)s::int[], %(starts)s::bigint[], %(ends)s::bigint[],
    %(texts)s::text[], %(headings)s::text[], %(tokens)s::int[], %(hashes)s::bytea[])
    AS c(id, index, page, start, stop, text, heading, tokens, hash)
"""
# The vectors are in the database already: they are joined, not sent a second time.
_VECTORS = """
INSERT INTO retrieval_chunkvector (chunk_id, space_id, team_id, collection_id, document_id, embedding)
SELECT c.id, d.space_id, c.team_id, c.collection_id, c.document_id, d.embedding
FROM retrieval_chunk c JOIN retrieval_embeddingdraft d
    ON d.document_id = c.document_id AND d.space_id = %(space)s AND d.content_hash = c.content_hash
WHERE c.document_id = %(document)s
"""


class SpaceChanged(Exception):
    """Another embedding space became active meanwhile; the version has to be embedded there."""


def version_commit(
    lease: Lease, reading: Reading, cuts: Sequence[ChunkCut], space: EmbeddingSpace
) -> set[str]:
    """Replace what served before by this version. Returns hashes of originals that may now be unused.

    Errors: LeaseLost when the job is somebody else's, SpaceChanged when another space is active now; nothing is
    changed then.
    """
    lease.write(lease_expires_at=timezone.now() + _COMMIT)
    with transaction.atomic():
        spaces_lock(alone=False)
        if space_active() != space:
            raise SpaceChanged
        row = Document.objects.select_for_update().filter(pk=lease.document_id, fencing=lease.fencing).first()
        if row is None:
            raise LeaseLost
        before, _ = Chunk.objects.filter(document=row).delete()
        DocumentText.objects.filter(document=row).delete()
        _insert_texts(lease, reading)
        written = _insert_chunks(lease, reading, cuts, space)
        if written != len(cuts):
            raise RetrievalError(
                f"{len(cuts) - written} of {len(cuts)} chunks have no vector. Retry the document."
            )
        collection_recount(row.collection_id, written - before)
        superseded = {row.serving_sha256} - {"", lease.sha256}
        row.language = document_words_write(row.pk, row.collection_id)
        row.serving_version, row.serving_sha256 = lease.version, lease.sha256
        row.status, row.ready_at, row.chunk_count = Status.READY, timezone.now(), written
        row.progress_done = row.progress_total = written
        row.lease_owner, row.lease_expires_at, row.attempts, row.password_sealed = "", None, 0, ""
        row.save()
        EmbeddingDraft.objects.filter(document=row).delete()
    return superseded


def collection_recount(collection_id: UUID, difference: int) -> None:
    """Move a collection's chunk count; inside the transaction that adds or removes the chunks."""
    Collection.objects.filter(pk=collection_id).update(chunk_count=F("chunk_count") + difference)


def _insert_texts(lease: Lease, reading: Reading) -> None:
    rows, start = [], 0
    for page in reading.pages:
        rows.append(
            DocumentText(
                team_id=lease.team_id,
                document_id=lease.document_id,
                version=lease.version,
                page=page.number,
                start=start,
                text=page.text,
                lines=[(line.start, line.end, *line.box) for line in page.lines],
                aspect=page.aspect,
            )
        )
        start += len(page.text) + len(PAGE_BREAK)
    DocumentText.objects.bulk_create(rows, batch_size=_ROWS)


def _insert_chunks(lease: Lease, reading: Reading, cuts: Sequence[ChunkCut], space: EmbeddingSpace) -> int:
    """How many of the chunks have a vector: all of them, unless something is wrong."""
    fixed: dict[str, Any] = {
        "team": lease.team_id,
        "collection": lease.collection_id,
        "document": lease.document_id,
        "version": lease.version,
    }
    with connection.cursor() as cursor:
        for part in _parts(cuts):
            cursor.execute(_INSERT, {**fixed, **_columns(part, paged=reading.paged)})
        cursor.execute(_VECTORS, {"document": lease.document_id, "space": space.pk})
        return int(cursor.rowcount)


def _columns(cuts: Sequence[ChunkCut], *, paged: bool) -> dict[str, Any]:
    return {
        "ids": [uuid7() for _ in cuts],
        "indexes": [cut.index for cut in cuts],
        "pages": [cut.page if paged else None for cut in cuts],
        "starts": [cut.start for cut in cuts],
        "ends": [cut.end for cut in cuts],
        "texts": [cut.text for cut in cuts],
        "headings": [cut.heading for cut in cuts],
        "tokens": [cut.tokens for cut in cuts],
        "hashes": [content_hash(cut.embedded_text) for cut in cuts],
    }


def _parts(cuts: Sequence[ChunkCut]) -> Iterator[list[ChunkCut]]:
    rest = iter(cuts)
    while part := list(islice(rest, _ROWS)):
        yield part

"""The one transaction in which a new version begins to serve."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from uuid_utils.compat import uuid7

from retrieval.chunking import ChunkCut
from retrieval.copying import Field, integer, long, rows_copy
from retrieval.drafts import content_hash
from retrieval.errors import LeaseLost, RetrievalError
from retrieval.keyword_index import document_words_write
from retrieval.lease import Lease
from retrieval.models import Chunk, Collection, Document, DocumentText, EmbeddingDraft, EmbeddingSpace, Status
from retrieval.parsing import PAGE_BREAK, Reading
from retrieval.selectors import space_active
from retrieval.spaces import spaces_lock

WAITING = 50_000
"""Vectors that may wait for the approximate index: comparing them all takes some 20 ms."""
_ROWS = 1000

_COLUMNS = (
    *("id", "created_at", "team_id", "collection_id", "document_id", "version"),
    *("index", "page", "start", '"end"', "text", "heading", "tokens", "content_hash"),
)
# The vectors are in the database already: they are joined, not sent a second time.
# They enter the approximate index later, unless so many wait for that already that searching them one by one shows:
# of a document that is longer than what may still wait, the rest enters at once. Commits of one moment do not see each
# other, so that as many may wait for each of them.
_VECTORS = """
INSERT INTO retrieval_chunkvector (chunk_id, space_id, team_id, collection_id, document_id, embedding, indexed)
SELECT c.id, d.space_id, c.team_id, c.collection_id, c.document_id, d.embedding,
    row_number() OVER () + (
        SELECT count(*) FROM (SELECT FROM retrieval_chunkvector WHERE NOT indexed LIMIT %(waiting)s) AS w
    ) > %(waiting)s
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
    lease.write()
    # However long this takes, nobody takes the document over: its row is locked, and ready when it is not.
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
    now = timezone.now()
    for part in _parts(cuts):
        rows_copy("retrieval_chunk", _COLUMNS, (_row(lease, cut, now, paged=reading.paged) for cut in part))
    with connection.cursor() as cursor:
        # Of rows this fresh the planner knows nothing, takes them for one or two, and would compare each with each.
        cursor.execute("SET LOCAL enable_nestloop = off")
        cursor.execute(_VECTORS, {"document": lease.document_id, "space": space.pk, "waiting": WAITING})
        written = int(cursor.rowcount)
        cursor.execute("SET LOCAL enable_nestloop = on")
    return written


def _row(lease: Lease, cut: ChunkCut, now: datetime, *, paged: bool) -> tuple[Field, ...]:
    return (
        uuid7(),
        now,
        lease.team_id,
        lease.collection_id,
        lease.document_id,
        integer(lease.version),
        integer(cut.index),
        integer(cut.page) if paged else None,
        long(cut.start),
        long(cut.end),
        cut.text,
        cut.heading,
        integer(cut.tokens),
        content_hash(cut.embedded_text),
    )


def _parts(cuts: Sequence[ChunkCut]) -> Iterator[list[ChunkCut]]:
    rest = iter(cuts)
    while part := list(islice(rest, _ROWS)):
        yield part

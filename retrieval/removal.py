"""Taking documents away: what goes, and the receipt that stays.

*Remove* takes a document out of search with everything derived from it; answers keep the passages they were given.
*Erase* begins with a removal; the tier above then blanks those passages under the receipt's number.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from retrieval.blobs import blobs_release
from retrieval.commit import collection_recount
from retrieval.models import Chunk, ChunkVector, Collection, Document, DocumentText, EmbeddingDraft, Receipt


def document_remove(*, document: Document, done_by: str, kind: str = Receipt.Kind.REMOVED) -> Receipt:
    """Remove a document with its text, chunks, vectors and drafts, and its original unless another one shares it."""
    with transaction.atomic():
        row = Document.objects.select_for_update().get(pk=document.pk)
        hashes = {row.sha256, row.serving_sha256} - {""}
        counts = _clear([row.pk])
        collection_recount(row.collection_id, -counts["chunks"])
        receipt = _receipt_new(row.team_id, row.collection_id, row.pk, kind, done_by)
        _receipt_keep(receipt, hashes, counts)
        row.delete()
    receipt_count(receipt, {"originals": blobs_release(hashes)})
    return receipt


def collection_remove(*, collection: Collection, done_by: str, kind: str = Receipt.Kind.REMOVED) -> Receipt:
    """Remove a collection with its documents, grants and the originals nobody else uses."""
    with transaction.atomic():
        rows = list(collection.documents.select_for_update().values_list("pk", "sha256", "serving_sha256"))
        hashes = {sha256 for row in rows for sha256 in row[1:]} - {""}
        counts = _clear([row[0] for row in rows])
        receipt = _receipt_new(collection.team_id, collection.pk, None, kind, done_by)
        _receipt_keep(receipt, hashes, counts)
        collection.delete()
    receipt_count(receipt, {"originals": blobs_release(hashes)})
    return receipt


def receipt_count(receipt: Receipt, counts: Mapping[str, int]) -> None:
    """Add what was taken away elsewhere."""
    receipt.counts = {**receipt.counts, **counts}
    receipt.save(update_fields=["counts"])


def receipt_erased(*, removed: Receipt, done_by: str) -> Receipt:
    """A receipt for erasing what was removed earlier: nothing is left here but the passages above."""
    receipt = _receipt_new(
        removed.team_id, removed.collection_id, removed.document_id, Receipt.Kind.ERASED, done_by
    )
    _receipt_keep(receipt, set(removed.hashes), {})
    return receipt


def _clear(documents: Sequence[UUID]) -> dict[str, int]:
    """Delete what was derived from these documents; counts of what is gone. Vectors go with their chunks."""
    vectors = ChunkVector.objects.filter(chunk__document__in=documents).count()
    chunks = Chunk.objects.filter(document__in=documents).delete()[1].get("retrieval.Chunk", 0)
    pages, _ = DocumentText.objects.filter(document__in=documents).delete()
    drafts, _ = EmbeddingDraft.objects.filter(document__in=documents).delete()
    return {
        "documents": len(documents),
        "pages": pages,
        "chunks": chunks,
        "vectors": vectors,
        "drafts": drafts,
    }


def _receipt_new(
    team_id: UUID, collection_id: UUID, document_id: UUID | None, kind: str, done_by: str
) -> Receipt:
    identity = uuid7()
    return Receipt(
        id=identity,
        number=f"{kind[0].upper()}-{timezone.now():%Y%m%d}-{identity.hex[-10:].upper()}",
        kind=kind,
        team_id=team_id,
        collection_id=collection_id,
        document_id=document_id,
        done_by=done_by,
    )


def _receipt_keep(receipt: Receipt, hashes: set[str], counts: Mapping[str, int]) -> None:
    receipt.hashes, receipt.counts = sorted(hashes), dict(counts)
    receipt.save()

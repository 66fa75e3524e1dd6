"""One ingestion job, from the original to a version that serves."""

from uuid import UUID

from django.db.models import F

from retrieval.models import Collection, Document


def run(document_id: UUID) -> str:
    """Work on one document until it is ready, failed or somebody else's, and return its status."""
    return Document.objects.get(pk=document_id).status


def collection_recount(collection_id: UUID, difference: int) -> None:
    """Move a collection's chunk count; inside the transaction that adds or removes the chunks."""
    Collection.objects.filter(pk=collection_id).update(chunk_count=F("chunk_count") + difference)

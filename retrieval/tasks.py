"""Celery's way into ingestion: an id in, one service called."""

from uuid import UUID

from celery import shared_task

from retrieval import services


@shared_task(name="retrieval.tasks.document_ingest", acks_late=False, ignore_result=True)
def document_ingest(document_id: str) -> None:
    """Ingest one document. Acknowledged early: the row's lease, not the message, decides who works again."""
    services.document_ingest(UUID(document_id))


@shared_task(name="retrieval.tasks.documents_requeue_expired", ignore_result=True)
def documents_requeue_expired() -> int:
    """Enqueue again what a killed worker or a lost message left unfinished. Returns how many."""
    due = services.documents_due()
    for document_id in due:
        document_ingest.delay(str(document_id))
    return len(due)

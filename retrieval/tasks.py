"""Celery's way into ingestion: an id in, one service called."""

import time
from uuid import UUID

from celery import current_app, shared_task
from django.conf import settings
from kombu.exceptions import ChannelError

from retrieval import blobs, keyword_index, lease, rebuild, services, spaces

_LANES = (settings.INGEST_QUEUE, settings.INGEST_QUEUE_SMALL)


@shared_task(name="retrieval.tasks.document_ingest", acks_late=False, ignore_result=True)
def document_ingest(document_id: str) -> None:
    """Ingest one document. Acknowledged early: the row's lease, not the message, decides who works again."""
    services.document_ingest(UUID(document_id))


@shared_task(name="retrieval.tasks.documents_requeue_expired", ignore_result=True)
def documents_requeue_expired() -> int:
    """Enqueue again what a killed worker or a lost message left unfinished. Returns how many."""
    due = lease.documents_due(messages={queue: _messages(queue) for queue in _LANES})
    for document_id, queue in due:
        document_ingest.apply_async((str(document_id),), queue=queue)
    return len(due)


def _messages(queue: str) -> int:
    """How many wait in a queue."""
    with current_app.connection_or_acquire() as broker:
        try:
            return int(broker.default_channel.queue_declare(queue, passive=True).message_count)
        except ChannelError:
            # Redis and Valkey know no empty list.
            return 0


@shared_task(name="retrieval.tasks.spaces_advance", ignore_result=True)
def spaces_advance() -> str:
    """Build another embedding model's space a little further. In slices, so that nothing else waits for long."""
    until = time.monotonic() + 20
    return rebuild.spaces_advance(go_on=lambda: time.monotonic() < until)


@shared_task(name="retrieval.tasks.originals_sweep", ignore_result=True)
def originals_sweep() -> int:
    """Remove files that no row refers to. Returns how many."""
    return blobs.blobs_sweep()


@shared_task(name="retrieval.tasks.words_fold", ignore_result=True)
def words_fold() -> int:
    """Join the word counts of what was written and removed lately. Returns how many differences there were."""
    return keyword_index.words_fold()


@shared_task(name="retrieval.tasks.vectors_fold", ignore_result=True)
def vectors_fold() -> int:
    """Enter vectors stored lately into the index, for a few seconds at most. Returns how many."""
    until = time.monotonic() + 4
    return spaces.vectors_fold(go_on=lambda: time.monotonic() < until)

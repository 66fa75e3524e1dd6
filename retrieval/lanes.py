"""Which queue a document waits in, and how long it still takes."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection

from retrieval.models import Document, Status

_POSITIONS = """
SELECT id, place FROM (
    SELECT id, row_number() OVER (PARTITION BY size <= %(small)s ORDER BY queued_at, id) AS place
    FROM retrieval_document WHERE status = 'queued'
) AS line WHERE id = ANY(%(ids)s)
"""


def lane(size: int) -> str:
    """The queue for a file of this many bytes: a small one never waits behind a long one."""
    small: str = settings.INGEST_QUEUE_SMALL
    usual: str = settings.INGEST_QUEUE
    return small if size <= settings.INGEST_SMALL_BYTES else usual


def queue_positions(documents: Sequence[Document]) -> dict[UUID, int]:
    """Place in its lane of each queued one, from 1."""
    waiting = [row.pk for row in documents if row.status == Status.QUEUED]
    if not waiting:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_POSITIONS, {"small": settings.INGEST_SMALL_BYTES, "ids": waiting})
        return dict(cursor.fetchall())


def eta_seconds(document: Document, now: datetime) -> int | None:
    """Seconds the present stage still takes at its pace so far; None while that is not known."""
    if document.stage_at is None or not 0 < document.progress_done < document.progress_total:
        return None
    elapsed = (now - document.stage_at).total_seconds()
    left = document.progress_total - document.progress_done
    return max(1, round(elapsed * left / document.progress_done))

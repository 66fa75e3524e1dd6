"""What the API does around a document: keep the bytes, tell the worker, and say so when it cannot be told."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, cast
from uuid import UUID

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from rest_framework.request import Request

from app.accounts.selectors import viewer_of
from app.api.authentication import caller_of
from app.celery import app as celery
from app.common.errors import InvalidInput, TooLarge
from app.common.queues import queues_served
from app.common.redis_door import Unavailable
from retrieval.lanes import eta_seconds, lane, queue_positions
from retrieval.models import Document, Status
from retrieval.selectors import document_writable

INGEST = "retrieval.tasks.document_ingest"
"""The task by name: the web process needs nothing of what a worker imports."""

RECEIPT_HEADER = "X-Tessera-Receipt"
"""Names the receipt of a removal, whose answer has no body."""

_MULTIPART_SLACK = 1_000_000
"""What the other parts and the boundaries of a multipart body may take."""


def _unserved(queue: str) -> Mapping[str, str]:
    return {
        "part": f"queue {queue}",
        "message": f"No worker serves the queue “{queue}” now. The file is kept and queued; it is read when one is "
        "back. An administrator can look with `manage.py doctor`.",
    }


BROKER_AWAY: Mapping[str, str] = {
    "part": "broker",
    "message": "The broker (Valkey) does not answer. The file is kept and queued; it is read when the broker is back.",
}


def document_to_change(request: Request, document_id: UUID) -> Document:
    """The document, for a caller whose credential and grants allow to write. Errors: NotAllowed, NotFound."""
    caller = caller_of(request)
    caller.require_scope("write")
    return document_writable(viewer_of(caller), document_id)


def uploaded(request: Request) -> tuple[str, BinaryIO]:
    """Name and content of the file of a multipart request. Errors: InvalidInput without one; see `upload_check`."""
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or file.file is None:
        raise InvalidInput(
            'Send the file as the multipart field `file`, or an address as JSON: {"url": …}.',
            detail={"field": "file"},
        )
    return file.name or "", cast(BinaryIO, file.file)


def upload_check(request: Request) -> None:
    """Refuse by the announced length, before the body is taken apart. Errors: TooLarge."""
    limit = settings.UPLOAD_MAX_BYTES
    length = request.META.get("CONTENT_LENGTH") or "0"
    if int(length) > limit + _MULTIPART_SLACK:
        raise TooLarge(
            f"This upload is larger than the limit of {limit / 1_000_000:.0f} MB, so nothing was stored. "
            "Split it, or ask the administrator to raise the limit.",
            detail={"limit_bytes": limit},
        )


def document_enqueue(document: Document) -> Mapping[str, Any] | None:
    """Have a queued document ingested once the transaction is committed. Returns a warning when that has to wait.

    Nothing is lost then: the row is the job, and the beat enqueues again what nobody works on.
    """
    if document.status != Status.QUEUED:
        return None
    queue = lane(document.size)
    try:
        served = queues_served([queue])[queue]
    except Unavailable:
        return BROKER_AWAY
    transaction.on_commit(partial(_send, str(document.pk), queue))
    return None if served else _unserved(queue)


def _send(document_id: str, queue: str) -> None:
    try:
        # Once more: a pooled connection may have died with a broker that is back.
        celery.send_task(
            INGEST,
            (document_id,),
            queue=queue,
            retry=True,
            retry_policy={"max_retries": 1, "interval_start": 0},
        )
    except (BrokerError, *Unavailable):
        # It went away this very moment; the beat finds the row.
        return


def documents_shown(rows: Sequence[Document]) -> list[Document]:
    """Documents with what is only known now: place in the queue, and how long the stage still takes."""
    places, now = queue_positions(rows), timezone.now()
    for row in rows:
        row.queue_position = places.get(row.pk)  # type: ignore[attr-defined]
        row.eta_seconds = eta_seconds(row, now)  # type: ignore[attr-defined]
    return list(rows)

"""Writes: documents and their ingestion. Each takes a row that a selector gave out under the caller's rights."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import BinaryIO
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from retrieval import pipeline, storage
from retrieval.blobs import blob_lock, blobs_release
from retrieval.errors import Conflict, Invalid
from retrieval.fetch import address_parts
from retrieval.lease import FIRST_LOOK
from retrieval.models import WORKING, Collection, Document, Status
from retrieval.names import name_clean
from retrieval.ports import password_seal


def document_create(
    *, collection: Collection, name: str, content: BinaryIO | bytes, created_by: str, password: str = ""
) -> tuple[Document, bool]:
    """Keep the bytes and queue them for ingestion; the caller enqueues the task on commit when status is queued.

    The same bytes in the same collection give the existing row and False. One that had failed or was
    cancelled is queued again: a failed upload never blocks the next try. `password` is for an encrypted file and
    is forgotten once it was read. Errors: Invalid, TooLarge.
    """
    clean = _file_name(name)
    with storage.received(content, limit=settings.UPLOAD_MAX_BYTES) as item, transaction.atomic():
        if item.size == 0:
            raise Invalid("file", f"“{clean}” is empty, so there is nothing to read. Choose another file.")
        blob_lock(item.sha256)
        storage.blob_keep(item)
        document, created = Document.objects.get_or_create(
            collection=collection,
            sha256=item.sha256,
            defaults={
                "team_id": collection.team_id,
                "name": clean,
                "size": item.size,
                "created_by": created_by,
                "password_sealed": password_seal(password),
                **_waiting(),
            },
        )
        if not created and document.status in (Status.FAILED, Status.CANCELLED):
            _requeue(document, password)
    return document, created


def document_fetch(*, collection: Collection, url: str, created_by: str) -> tuple[Document, bool]:
    """Queue a page or file of the web for its worker, which fetches it; as `document_create` in all else.

    An address that is waiting here already, or could not be fetched, gives that row and False. Errors: Invalid.
    """
    address_parts(url)
    document, created = Document.objects.get_or_create(
        collection=collection,
        source_url=url,
        sha256="",
        defaults={
            "team_id": collection.team_id,
            "name": name_clean(url.partition("://")[2], "url"),
            "size": 0,
            "created_by": created_by,
            **_waiting(),
        },
    )
    if not created and document.status in (Status.FAILED, Status.CANCELLED):
        _requeue(document)
    return document, created


def _waiting() -> dict[str, datetime]:
    return {"queued_at": timezone.now(), "lease_expires_at": timezone.now() + FIRST_LOOK}


def document_replace(
    *, document: Document, content: BinaryIO | bytes, name: str | None = None, password: str = ""
) -> tuple[Document, bool]:
    """A new version: the old one serves until the new one is committed. False: the bytes are the same.

    Errors: Invalid, TooLarge, Conflict when the collection holds these bytes as another document.
    """
    with storage.received(content, limit=settings.UPLOAD_MAX_BYTES) as item, transaction.atomic():
        if item.size == 0:
            raise Invalid("file", "The new file is empty. The version before it stays as it is.")
        row = Document.objects.select_for_update().get(pk=document.pk)
        if row.sha256 == item.sha256:
            return row, False
        if Document.objects.filter(collection=row.collection_id, sha256=item.sha256).exists():
            raise Conflict("This collection already holds the same file as another document.")
        superseded = row.sha256
        blob_lock(item.sha256)
        storage.blob_keep(item)
        row.name = _file_name(name) if name else row.name
        row.sha256, row.size, row.version = item.sha256, item.size, row.version + 1
        _requeue(row, password)
    blobs_release({superseded})
    return row, True


def document_retry(*, document: Document, password: str = "") -> Document:
    """Queue a failed or cancelled document again; what was embedded before is not embedded twice. Errors: Conflict."""
    which = "a failed or cancelled document can be retried"
    return _queued_again(document, (Status.FAILED, Status.CANCELLED), which, password)


def document_reread(*, document: Document, password: str = "") -> Document:
    """Read a document anew, with today's reader and chunk sizes; what serves goes on serving. Errors: Conflict.

    What came from the web is fetched again, as a version of its own.
    """
    ended = (Status.READY, Status.FAILED, Status.CANCELLED)
    return _queued_again(
        document, ended, "one that is not being read can be read again", password, fetch=True
    )


def _queued_again(
    document: Document, states: Sequence[str], which: str, password: str, *, fetch: bool = False
) -> Document:
    superseded = ""
    with transaction.atomic():
        row = Document.objects.select_for_update().get(pk=document.pk)
        if row.status not in states:
            raise Conflict(f"“{row.name}” is {row.status}; only {which}.")
        if fetch and row.source_url and row.sha256:
            superseded = row.sha256
            _to_fetch(row)
        _requeue(row, password)
    blobs_release({superseded})
    return row


def _to_fetch(row: Document) -> None:
    """A new version whose content its worker fetches. Errors: Conflict while the same address is in line already."""
    waiting = Document.objects.filter(collection=row.collection_id, source_url=row.source_url, sha256="")
    if waiting.exists():
        raise Conflict("This address is being fetched in this collection at this moment. Wait for that.")
    row.sha256, row.version = "", row.version + 1


def document_cancel(*, document: Document) -> Document:
    """Stop an unfinished ingestion; a version that serves goes on serving. Errors: Conflict when nothing runs."""
    with transaction.atomic():
        row = Document.objects.select_for_update().get(pk=document.pk)
        if row.status not in (Status.QUEUED, *WORKING):
            raise Conflict(f"“{row.name}” is {row.status}; there is nothing to cancel.")
        # The raised number makes every later write of the worker that holds the lease a no-op.
        row.status, row.fencing, row.lease_owner, row.lease_expires_at = (
            Status.CANCELLED,
            row.fencing + 1,
            "",
            None,
        )
        row.password_sealed = ""
        row.save()
    return row


def document_ingest(document_id: UUID) -> str:
    """Run one ingestion job to its end and return the status it left; see `pipeline.run`."""
    return pipeline.run(document_id)


def _requeue(row: Document, password: str = "") -> None:
    row.password_sealed = password_seal(password)
    row.status, row.attempts, row.fencing = Status.QUEUED, 0, row.fencing + 1
    row.error_step = row.error_code = row.error_message = row.lease_owner = ""
    row.progress_done = row.progress_total = 0
    row.stage_at = row.progressed_at = None
    for name, value in _waiting().items():
        setattr(row, name, value)
    row.save()


def _file_name(name: str) -> str:
    """The last part of what a browser or a script sent, which may be a path of either kind."""
    return name_clean(PurePosixPath(name.replace("\\", "/")).name, "file")

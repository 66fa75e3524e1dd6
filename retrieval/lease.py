"""Who works on a document: a lease with an owner, an expiry, and a number that makes late writers harmless."""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from retrieval.errors import LeaseLost
from retrieval.lanes import lane
from retrieval.models import WORKING, Document, Status

STUCK = timedelta(minutes=20)
"""A job that shows no progress for so long is not held on to any more: longer than any one step may take."""
FIRST_LOOK = timedelta(minutes=2)
"""After this a queued document whose message was lost is enqueued again."""
MAX_ATTEMPTS = 4
"""A document whose worker died this often without any progress in between is given up with its reason."""


def lease_end() -> datetime:
    """When a lease renewed now expires."""
    return timezone.now() + timedelta(seconds=settings.INGEST_LEASE_SECONDS)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one version of one document, as long as nobody took it over."""

    document_id: UUID
    fencing: int
    collection_id: UUID
    team_id: UUID
    name: str
    sha256: str
    """Empty: to be fetched from `source_url`."""
    source_url: str
    password_sealed: str = field(repr=False)
    version: int
    level: str
    """Privacy level of the collection: its text goes only to servers cleared for it."""
    chunking: Mapping[str, int]
    """Sizes that the collection set itself."""

    def write(self, **fields: object) -> None:
        """Change the row and renew the lease: the job moved. Errors: LeaseLost when it is somebody else's, or gone."""
        now = timezone.now()
        values: dict[str, object] = {"lease_expires_at": lease_end(), "progressed_at": now, **fields}
        if "status" in fields:
            values["stage_at"] = values["updated_at"] = now
        if not self._mine().update(**values):
            raise LeaseLost

    def renew(self) -> None:
        """Hold on without progress. Errors: LeaseLost, also when nothing moved for too long."""
        moving = self._mine().filter(progressed_at__gt=timezone.now() - STUCK)
        if not moving.update(lease_expires_at=lease_end()):
            raise LeaseLost

    def reading(self, page: int, pages: int) -> None:
        """Being read still: at this page of so many, or, without any, at the one before. Errors: LeaseLost."""
        if pages:
            self.write(progress_done=page, progress_total=pages)
        else:
            self.renew()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Renew the lease from a thread of its own: no step needs to think of it, however long it takes."""
        done = threading.Event()
        thread = threading.Thread(target=self._hold, args=(done,), name=f"lease {self.document_id}")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _hold(self, done: threading.Event) -> None:
        try:
            while not done.wait(settings.INGEST_LEASE_SECONDS / 3):
                try:
                    self.renew()
                except (InterfaceError, OperationalError):
                    # The database is away; when it is back this connection is a new one.
                    connection.close()
        except LeaseLost:
            # The job's own next write finds out.
            return
        finally:
            connection.close()

    def _mine(self) -> QuerySet[Document]:
        return Document.objects.filter(pk=self.document_id, fencing=self.fencing, status__in=WORKING)


def lease_take(document_id: UUID) -> Lease | None:
    """The lease of a queued document, or of one whose worker is gone; None when there is nothing to do."""
    with transaction.atomic():
        row = (
            Document.objects.select_for_update(of=("self",))
            .select_related("collection")
            .filter(pk=document_id)
            .first()
        )
        if row is None or not _is_free(row):
            return None
        if row.attempts >= MAX_ATTEMPTS:
            _give_up(row)
            return None
        row.fencing += 1
        row.attempts += 1
        row.lease_owner = f"{socket.gethostname()}:{os.getpid()}"
        row.lease_expires_at = lease_end()
        row.status, row.stage_at, row.progressed_at = Status.PARSING, timezone.now(), timezone.now()
        row.progress_done = row.progress_total = 0
        row.error_step = row.error_code = row.error_message = ""
        row.save()
    return Lease(
        document_id=row.pk,
        fencing=row.fencing,
        collection_id=row.collection_id,
        team_id=row.team_id,
        name=row.name,
        sha256=row.sha256,
        source_url=row.source_url,
        password_sealed=row.password_sealed,
        version=row.version,
        level=row.collection.level,
        chunking=row.collection.chunking,
    )


def documents_due(*, messages: Mapping[str, int] | None = None, limit: int = 200) -> list[tuple[UUID, str]]:
    """Unfinished documents that no worker seems to hold (lost messages, expired leases), each with its queue.

    While a queue holds a message for each document that waits for it (`messages` by queue), none was lost: sent again
    and again, ten thousand files would become a hundred thousand messages. Each is marked as looked at, so that it is
    not enqueued every few seconds.
    """
    now = timezone.now()
    small = Q(size__lte=settings.INGEST_SMALL_BYTES)
    with transaction.atomic():
        due = (
            Document.objects.select_for_update(skip_locked=True)
            .filter(lease_expires_at__lt=now)
            .order_by("lease_expires_at")
            .values_list("pk", "size")
        )
        found = list(due.filter(status__in=WORKING)[:limit])
        for queue, its in ((settings.INGEST_QUEUE_SMALL, small), (settings.INGEST_QUEUE, ~small)):
            waiting = Q(its, status=Status.QUEUED)
            lost = Document.objects.filter(waiting).count() - (messages or {}).get(queue, 0)
            # The oldest of them: a queue keeps its order.
            queued = list(due.filter(waiting)[: max(0, min(lost, limit))])
            Document.objects.filter(pk__in=[pk for pk, _ in queued]).update(
                lease_expires_at=now + 5 * FIRST_LOOK
            )
            found += queued
    return [(pk, lane(size)) for pk, size in found]


def _is_free(row: Document) -> bool:
    if row.status == Status.QUEUED:
        return True
    expired = row.lease_expires_at is None or row.lease_expires_at < timezone.now()
    return row.status in WORKING and expired


def _give_up(row: Document) -> None:
    row.error_step, row.error_code = row.status, "abandoned"
    row.error_message = (
        f"The worker stopped {row.attempts} times while this document was at “{row.status}”, so it was given up. "
        "The file probably needs more memory than the worker has: split it, then retry."
    )
    row.status, row.lease_owner, row.lease_expires_at, row.password_sealed = Status.FAILED, "", None, ""
    row.save()

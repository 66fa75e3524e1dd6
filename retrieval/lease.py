"""Who works on a document: a lease with an owner, an expiry, and a number that makes late writers harmless."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from retrieval.errors import LeaseLost
from retrieval.models import WORKING, Document, Status

LEASE = timedelta(seconds=90)
MAX_ATTEMPTS = 4
"""A document whose worker died this often is given up with its reason."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one version of one document, as long as nobody took it over."""

    document_id: UUID
    fencing: int
    collection_id: UUID
    team_id: UUID
    name: str
    sha256: str
    version: int
    level: str
    """Privacy level of the collection: its text goes only to servers cleared for it."""

    def write(self, **fields: object) -> None:
        """Change the row and renew the lease. Errors: LeaseLost when somebody else works on it, or it is gone."""
        values: Mapping[str, object] = {"lease_expires_at": timezone.now() + LEASE, **fields}
        if not Document.objects.filter(pk=self.document_id, fencing=self.fencing).update(**values):
            raise LeaseLost

    def renew(self) -> None:
        """Errors: LeaseLost."""
        self.write()


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
        row.lease_expires_at = timezone.now() + LEASE
        row.status = Status.PARSING
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
        version=row.version,
        level=row.collection.level,
    )


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
    row.status, row.lease_owner, row.lease_expires_at = Status.FAILED, "", None
    row.save()

"""The original of a document that was given as an address: fetched by its job, kept as if it had been uploaded."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings
from django.db import transaction

from retrieval import storage
from retrieval.blobs import blob_lock
from retrieval.errors import Conflict, LeaseLost, ReadError
from retrieval.fetch import Fetched, FetchLimits, fetch
from retrieval.lease import Lease
from retrieval.models import Document
from retrieval.ports import fetched_admit


def original_fetch(lease: Lease) -> Lease:
    """Fetch and keep what lies at the lease's address; the lease as it is with it.

    Errors: AddressRefused, FetchFailed, TooLarge, ReadError for an empty answer, Conflict when the collection has
    these bytes, LeaseLost, whatever the limits raise.
    """
    limit = settings.UPLOAD_MAX_BYTES
    with TemporaryDirectory() as place:
        file = Path(place, "fetched")
        found = fetch(lease.source_url, file, limits=FetchLimits(bytes=limit, allow=settings.FETCH_ALLOW))
        if not found.bytes:
            raise ReadError(
                f"There is an empty page at {lease.source_url}. Check the address.", reason="empty"
            )
        with file.open("rb") as content, storage.received(content, limit=limit) as item:
            return _kept(lease, found, item)


def _kept(lease: Lease, found: Fetched, item: storage.Received) -> Lease:
    with transaction.atomic():
        row = Document.objects.select_for_update().filter(pk=lease.document_id, fencing=lease.fencing).first()
        if row is None:
            raise LeaseLost
        blob_lock(item.sha256)
        same = Document.objects.filter(collection=lease.collection_id, sha256=item.sha256).first()
        if same is not None:
            raise Conflict(
                f"What lies at this address is in this collection already, as “{same.name}”. Delete this entry."
            )
        # Counted and kept in one transaction, as an upload is.
        fetched_admit(row, item.size)
        storage.blob_keep(item)
        lease.write(sha256=item.sha256, size=item.size, name=found.name)
    return replace(lease, sha256=item.sha256, name=found.name)

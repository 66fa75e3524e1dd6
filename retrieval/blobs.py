"""Originals and the rows that refer to them: no file goes while a row needs it, none stays without one."""

from django.db import connection, transaction
from django.db.models import Q

from retrieval import storage
from retrieval.derived import derived_hashes, derived_remove
from retrieval.models import Document

_SETTLED_SECONDS = 3600
"""An upload under way is younger."""


def blob_lock(sha256: str) -> None:
    """Until the end of the transaction no other one keeps or removes the original of this hash."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"blob:{sha256}"])


def blob_needed(sha256: str) -> bool:
    """Whether a document has this original, in the version that serves or the one that is read; under `blob_lock`."""
    return Document.objects.filter(Q(sha256=sha256) | Q(serving_sha256=sha256)).exists()


def blobs_sweep() -> int:
    """Remove originals without a row: what a process left that died between its commit and the file.

    What was made from them goes too. Returns how many originals went.
    """
    removed = sum(blobs_release({sha256}) for sha256 in storage.blobs_older_than(_SETTLED_SECONDS))
    for sha256 in derived_hashes():
        blobs_release({sha256})
    return removed


def blobs_release(hashes: set[str]) -> int:
    """Remove originals that no document refers to any more; after the commit of what referred to them."""
    removed = 0
    for sha256 in sorted(hashes - {""}):
        with transaction.atomic():
            blob_lock(sha256)
            if not blob_needed(sha256):
                derived_remove(sha256)
                removed += storage.blob_remove(sha256)
    return removed

"""Originals and the rows that refer to them: no file goes while a row needs it, none stays without one."""

from django.db import connection, transaction
from django.db.models import Q

from retrieval import storage
from retrieval.models import Document


def blob_lock(sha256: str) -> None:
    """Until the end of the transaction no other one keeps or removes the original of this hash."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"blob:{sha256}"])


def blobs_release(hashes: set[str]) -> int:
    """Remove originals that no document refers to any more; after the commit of what referred to them."""
    removed = 0
    for sha256 in sorted(hashes):
        with transaction.atomic():
            blob_lock(sha256)
            if not Document.objects.filter(Q(sha256=sha256) | Q(serving_sha256=sha256)).exists():
                removed += storage.blob_remove(sha256)
    return removed

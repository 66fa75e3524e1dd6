"""The page as a picture: drawn once in the reading process, kept beside the original, gone with it."""

import threading

from django.db import transaction

from retrieval import storage
from retrieval.blobs import blob_lock, blob_needed
from retrieval.derived import derived_keep, derived_read
from retrieval.errors import Busy, NotFound, ReadError
from retrieval.models import Document, DocumentText
from retrieval.parsing.limits import Limits
from retrieval.parsing.sandbox import picture_confined
from retrieval.parsing.source import Source
from retrieval.stores import Gone

_QUICK = Limits(cpu_seconds=20, wall_seconds=60)
_AT_ONCE = threading.BoundedSemaphore(2)
"""Readers that this process has drawing; further requests wait."""
_PATIENCE_SECONDS = 60.0


def picture_tag(document: Document, number: int) -> str:
    """Changes with the content of a page's picture, and is known without drawing it."""
    return f"{document.serving_sha256[:32]}-{number}"


def page_picture(*, document: Document, number: int) -> bytes:
    """WebP of one page of the version that serves.

    Errors: NotFound with a sentence where there is none, Busy when too many are being drawn.
    """
    row = DocumentText.objects.filter(document=document, version=document.serving_version, page=number)
    aspects = list(row.values_list("aspect", flat=True))
    if not aspects:
        raise _none(document, number, "It has no such page that was read.")
    if aspects[0] is None:
        raise _none(document, number, _why_none(document))
    kept = derived_read(document.serving_sha256, f"{number}.webp")
    return kept or _drawn(document, number)


def _why_none(document: Document) -> str:
    if document.mime != "application/pdf" and not document.mime.startswith("image/"):
        return "Its format has no pages to be shown; its text is all there is."
    return (
        "Its text is all there is: the page is damaged, or the file is encrypted and its password was forgotten once "
        "it was read, or it was read before pictures were made; have it read again in that case."
    )


def _drawn(document: Document, number: int) -> bytes:
    if not _AT_ONCE.acquire(timeout=_PATIENCE_SECONDS):
        raise Busy("Too many pages are being drawn at this moment. Try again in a few seconds.")
    try:
        with storage.blob_file(document.serving_sha256) as path:
            made = picture_confined(Source(path, document.name, limits=_QUICK), number)
    except Gone as error:
        raise _none(document, number, "Its original is not in the store any more.") from error
    except ReadError as error:
        raise _none(document, number, error.message) from error
    finally:
        _AT_ONCE.release()
    _keep(document.serving_sha256, f"{number}.webp", made)
    return made


def _keep(sha256: str, name: str, content: bytes) -> None:
    """Keep it unless the document went meanwhile: an erasure must leave nothing that is made after it."""
    with transaction.atomic():
        blob_lock(sha256)
        if blob_needed(sha256):
            derived_keep(sha256, name, content)


def _none(document: Document, number: int, why: str) -> NotFound:
    return NotFound("picture of page", f"{number} of “{document.name}”", hint=why)

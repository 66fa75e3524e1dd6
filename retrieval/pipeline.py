"""One ingestion job: fetch an address, parse, chunk, embed, commit. The row is the job and tells where it stands.

The new version serves from the moment its one transaction commits; until then, and after any failure, the old
one does. Vectors that were paid for are kept as drafts, so that a job that was killed or retried embeds no text twice.
"""

import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from uuid import UUID

from django.db import InterfaceError, OperationalError

from retrieval import commit, drafts, parsing, storage
from retrieval.blobs import blobs_release
from retrieval.chunking import ChunkCut, chunk
from retrieval.errors import LeaseLost, ReadError, RetrievalError
from retrieval.fetching import original_fetch
from retrieval.lease import Lease, lease_take
from retrieval.models import Document, Status
from retrieval.parsing import Reading
from retrieval.patience import tries
from retrieval.ports import password_open
from retrieval.previews import chunking_settings
from retrieval.spaces import space_current
from retrieval.stores import Gone

logger = logging.getLogger(__name__)
_DATABASE_AWAY = (OperationalError, InterfaceError)


def run(document_id: UUID) -> str:
    """Work on one document until it is ready, failed, or somebody else's. Returns its status, empty if it is gone.

    Errors: OperationalError, InterfaceError or the tier above's own while the database is away: nothing can be
    written then, the lease expires and the job is taken up again.
    """
    lease = lease_take(document_id)
    if lease is not None:
        with lease.held(), _Outcome(lease) as outcome:
            lease = _original(lease, outcome)
            reading = _parse(lease, outcome)
            cuts = _chunk(lease, outcome, reading)
            blobs_release(_serve(lease, outcome, reading, cuts))
    return Document.objects.filter(pk=document_id).values_list("status", flat=True).first() or ""


class _Outcome:
    """Sees to it that a job always ends in a state with a reason, whatever went wrong."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self.step: str = Status.PARSING

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception) or _database_away(error):
            return False
        if isinstance(error, LeaseLost):
            logger.info("document %s was taken over or cancelled at %s", self._lease.document_id, self.step)
            return True
        message, code = _explained(error, self.step)
        logger.warning(
            "document %s failed at %s: %s",
            self._lease.document_id,
            self.step,
            code,
            exc_info=_unforeseen(error),
        )
        try:
            self._lease.write(
                status=Status.FAILED,
                error_step=self.step,
                error_code=code,
                error_message=message,
                lease_owner="",
                lease_expires_at=None,
                password_sealed="",
            )
        except LeaseLost:
            logger.info("document %s was taken over while it failed", self._lease.document_id)
        return True


def _database_away(error: Exception) -> bool:
    """Whether nothing can be written now, as Django says it or the tier above."""
    return isinstance(error, _DATABASE_AWAY) or getattr(error, "code", "") == "database_unavailable"


def _unforeseen(error: Exception) -> bool:
    """Whether the log needs the traceback: an error that carries its own sentence explains itself."""
    return not getattr(error, "message", None)


def _explained(error: Exception, step: str) -> tuple[str, str]:
    """(sentence, code): the error's own, where it brings one; the embedder's errors come from the tier above."""
    if isinstance(error, ReadError):
        return error.message, error.reason
    message = getattr(error, "message", None)
    if isinstance(message, str) and message:
        return message, str(getattr(error, "code", "failed"))
    sentence = (
        f"Something unforeseen went wrong at “{step}” ({type(error).__name__}). Retry; if it fails again, give the "
        "administrator this document's id."
    )
    return sentence, "unforeseen"


def _original(lease: Lease, outcome: _Outcome) -> Lease:
    if lease.sha256:
        return lease
    outcome.step = "fetching"
    return original_fetch(lease)


def _parse(lease: Lease, outcome: _Outcome) -> Reading:
    outcome.step = Status.PARSING
    password = password_open(lease.password_sealed)
    try:
        for patience in tries():
            with patience:
                return _read(lease, password)
            lease.write()
            time.sleep(patience.seconds)
        return _read(lease, password)
    except Gone as exc:
        raise RetrievalError(
            f"The original of “{lease.name}” is not in the store any more. Remove the document and upload it again."
        ) from exc


def _read(lease: Lease, password: str | None) -> Reading:
    with storage.blob_file(lease.sha256) as path:
        return parsing.read(path, lease.name, password=password, heartbeat=lease.reading)


def _chunk(lease: Lease, outcome: _Outcome, reading: Reading) -> list[ChunkCut]:
    outcome.step = Status.CHUNKING
    lease.write(
        status=Status.CHUNKING,
        progress_done=0,
        progress_total=0,
        mime=reading.mime,
        reader=f"{reading.format}/{parsing.VERSION}",
        pages=len(reading.pages) if reading.paged else None,
        warnings=list(reading.warnings),
        metadata={**reading.metadata, **_described(lease)},
        title=str(reading.metadata.get("title", ""))[:500],
    )
    cuts = chunk(reading.pages, settings=chunking_settings(lease.chunking))
    if not cuts:
        raise ReadError(f"“{lease.name}” holds no text that could be searched.", reason="empty")
    return cuts


def _described(lease: Lease) -> Mapping[str, object]:
    """What people said of the document, also while it was being read."""
    said = Document.objects.filter(pk=lease.document_id).values_list("described", flat=True).first()
    return said or {}


def _serve(lease: Lease, outcome: _Outcome, reading: Reading, cuts: list[ChunkCut]) -> set[str]:
    """Embed and commit, again where the active space changed in between. Gives originals that may be unused now."""
    while True:
        outcome.step = Status.EMBEDDING
        lease.write(status=Status.EMBEDDING, progress_done=0, progress_total=len(cuts))
        space = space_current()
        drafts.drafts_fill(lease, space, cuts)
        outcome.step = "committing"
        try:
            return commit.version_commit(lease, reading, cuts, space)
        except commit.SpaceChanged:
            logger.info("document %s is embedded again: another model serves now", lease.document_id)

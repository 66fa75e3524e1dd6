"""Everything the retrieval tier refuses, as one tree.

RetrievalError
├── NotFound             unknown or unreadable: the caller cannot tell which
├── Forbidden            readable, but the asked verb was not granted
├── Invalid              an input that can never be accepted as it is
├── Conflict             the row's present state does not allow the action
├── TooLarge             over a size limit, with the limit
├── ReadError            a file that cannot be read, with the reason
├── EmbeddingUnavailable the embedder failed or answered nonsense
│   └── EmbeddingMismatch  its vectors are not those of the stored documents
├── StoreAway            the bucket of originals does not answer, or refuses
├── Busy                 too much of this kind runs at this moment
└── LeaseLost            another worker took the job over; stop writing

Each class carries a stable code and the HTTP status a web tier may answer with; this module knows
no HTTP itself and imports nothing, so the parsing subprocess starts without Django.
"""

from collections.abc import Mapping


class RetrievalError(Exception):
    """The retrieval tier could not do what was asked."""

    code = "retrieval_failed"
    status = 500
    retryable = False

    def __init__(self, message: str | None = None, *, detail: Mapping[str, object] | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.detail: dict[str, object] = dict(detail or {})
        super().__init__(self.message)


class NotFound(RetrievalError):
    """There is nothing here under this name that you may see."""

    code = "not_found"
    status = 404

    def __init__(
        self, kind: str, item: object, *, hint: str = "Check the id, or ask its owner for access."
    ) -> None:
        # One sentence for "unknown" and "not yours": the answer must not tell them apart.
        super().__init__(
            f"No {kind} {item!s} was found among those you may read. {hint}",
            detail={"kind": kind, "id": str(item)},
        )


class Forbidden(RetrievalError):
    """You may read this, but not change it. Ask its owner for the right to."""

    code = "forbidden"
    status = 403


class Invalid(RetrievalError):
    """This input cannot be accepted as it is."""

    code = "validation_failed"
    status = 422

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, detail={"field": field})


class Conflict(RetrievalError):
    """The present state does not allow this. Reload and look again."""

    code = "conflict"
    status = 409


class TooLarge(RetrievalError):
    """The file is over the size limit."""

    code = "too_large"
    status = 413

    def __init__(self, *, limit: int, what: str = "file") -> None:
        super().__init__(
            f"The {what} is larger than the limit of {limit / 1_000_000:.0f} MB, so nothing was stored. "
            "Split it, or ask the administrator to raise the limit.",
            detail={"limit_bytes": limit},
        )


class ReadError(RetrievalError):
    """The file cannot be read.

    `reason` is a stable word (encrypted, scanned, damaged, unsupported, too_large, empty, bomb,
    timeout, crashed); the message says what happened, what it means and what to do.
    """

    code = "unreadable"
    status = 422

    def __init__(self, message: str, *, reason: str = "damaged") -> None:
        super().__init__(message, detail={"reason": reason})
        self.reason = reason


class EmbeddingUnavailable(RetrievalError):
    """The embedding server did not answer as it should. Nothing was lost; try again in a moment."""

    code = "embedding_unavailable"
    status = 503
    retryable = True


class EmbeddingMismatch(EmbeddingUnavailable):
    """The configured embedder is not the one the documents were embedded with; trying again does not help."""

    code = "embedding_mismatch"
    retryable = False


class StoreAway(RetrievalError):
    """What holds the originals does not answer. Nothing was lost; try again in a moment."""

    code = "part_failed"
    status = 503
    retryable = True
    retry_after = 5.0

    def __init__(self, bucket: str, cause: str) -> None:
        super().__init__(
            f"The store of originals (bucket “{bucket}”) does not answer as it should: {cause}. Nothing was lost; try "
            "again in a moment, and if it stays so an administrator finds more by `manage.py doctor`.",
            detail={"part": "originals", "cause": cause},
        )


class Busy(RetrievalError):
    """Too much of this kind runs at this moment. Try again in a few seconds."""

    code = "busy"
    status = 503
    retryable = True


class LeaseLost(RetrievalError):
    """Another worker has taken this document over; this one stops without writing."""

    code = "lease_lost"
    status = 409

"""How a collection cuts its documents: its sizes checked, and what they would make of one document."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from retrieval import parsing, storage
from retrieval.chunking import ChunkCut, Settings, chunk
from retrieval.errors import Conflict, Invalid
from retrieval.models import Document
from retrieval.parsing.limits import Limits
from retrieval.stores import Gone

_BOUNDS = {"size": (50, 450), "overlap": (0, 200), "small": (0, 450)}
"""Tokens. Above the highest size the usual embedders cut the text off without a word."""
_QUICK = Limits(cpu_seconds=20, wall_seconds=30)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a document would be cut into."""

    total: int
    chunks: tuple[ChunkCut, ...]
    """The first of them."""


def chunking_settings(given: Mapping[str, int]) -> Settings:
    """Sizes as they count: what is given over what is usual. Errors: Invalid naming the size."""
    known = {item.name for item in fields(Settings)}
    for name, value in given.items():
        if name not in known:
            raise Invalid("chunking", f"“{name}” is not one of {', '.join(sorted(known))}.")
        least, most = _BOUNDS[name]
        if not least <= value <= most:
            raise Invalid("chunking", f"“{name}” is {value}; it can be {least} to {most} tokens.")
    made = Settings(**given)
    if made.overlap * 2 > made.size or made.small > made.size:
        raise Invalid(
            "chunking", "The overlap is at most half the size, and a small chunk no larger than it."
        )
    return made


def chunking_shown(given: Mapping[str, int]) -> dict[str, int]:
    """All sizes, those that were not set with their usual value."""
    return asdict(Settings(**given))


def document_preview(
    *, document: Document, chunking: Mapping[str, int], limit: int, password: str = ""
) -> Preview:
    """Cut one document with these sizes, storing nothing. An encrypted file needs its password again.

    Errors: Invalid, ReadError (also when reading takes longer than a preview may), Conflict without an original.
    """
    settings = chunking_settings(chunking)
    try:
        with storage.blob_file(document.serving_sha256 or document.sha256) as path:
            reading = parsing.read(path, document.name, password=password or None, limits=_QUICK)
    except Gone as exc:
        raise Conflict(
            f"The original of “{document.name}” is not in the store any more. Remove the document and upload it again."
        ) from exc
    cuts = chunk(reading.pages, settings=settings)
    return Preview(len(cuts), tuple(cuts[:limit]))

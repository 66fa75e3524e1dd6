"""Originals, by the SHA-256 of their bytes: received, kept, opened and removed, wherever they are stored."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from retrieval.errors import TooLarge
from retrieval.stores import scratch_file, store

_PIECE = 1 << 20
_KEY = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that arrived in full but are not kept yet."""

    path: Path
    sha256: str
    size: int


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def _pieces(content: BinaryIO | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    while piece := content.read(_PIECE):
        yield piece


@contextmanager
def received(content: BinaryIO | bytes, *, limit: int) -> Iterator[Received]:
    """Write `content` to a temporary file while hashing it; the file is gone afterwards unless kept.

    Memory stays at one piece of 1 MB whatever the size. Errors: TooLarge as soon as `limit` bytes are exceeded.
    """
    digest, size = hashlib.sha256(), 0
    with scratch_file() as path:
        with path.open("wb") as out:
            for piece in _pieces(content):
                size += len(piece)
                if size > limit:
                    raise TooLarge(limit=limit)
                digest.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        yield Received(path=path, sha256=digest.hexdigest(), size=size)


def blob_keep(item: Received) -> None:
    """Put a received file in its place, atomically; the same bytes again change nothing. Errors: StoreAway."""
    store().keep(_key(item.sha256), item.path)


def blob_remove(sha256: str) -> bool:
    """Delete an original. False: it was not there. Errors: StoreAway."""
    return store().remove(_key(sha256))


def blob_file(sha256: str) -> AbstractContextManager[Path]:
    """The original as a local file, within the block. Errors: Gone, StoreAway."""
    return store().local(_key(sha256))


def blob_size(sha256: str) -> int | None:
    """Bytes of an original; None when it is not there. Errors: StoreAway."""
    return store().size(_key(sha256)) if sha256 else None


def blob_where(sha256: str) -> str:
    """Where it lies or should lie, for a message to whoever runs the installation."""
    return store().where(_key(sha256))


def blobs_older_than(seconds: float) -> Iterator[str]:
    """Hashes of the originals that have lain here for so long."""
    for key in store().keys(older_than=seconds):
        if _KEY.fullmatch(key):
            yield key[-64:]

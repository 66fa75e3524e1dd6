"""Originals: files named by the SHA-256 of their bytes, in a directory that web and worker share."""

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from retrieval.errors import TooLarge

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that arrived in full but are not kept yet."""

    path: Path
    sha256: str
    size: int


def _root() -> Path:
    return Path(settings.ORIGINALS_DIR)


def blob_path(sha256: str) -> Path:
    """Where the original of this hash lies, whether or not it is there."""
    return _root() / sha256[:2] / sha256[2:4] / sha256


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
    incoming = _root() / "incoming"
    incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest, size = hashlib.sha256(), 0
    handle, name = tempfile.mkstemp(dir=incoming)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for piece in _pieces(content):
                size += len(piece)
                if size > limit:
                    raise TooLarge(limit=limit)
                digest.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        yield Received(path=path, sha256=digest.hexdigest(), size=size)
    finally:
        path.unlink(missing_ok=True)


def blob_keep(item: Received) -> Path:
    """Move a received file to its place, atomically. Keeping the same bytes again changes nothing."""
    target = blob_path(item.sha256)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    item.path.replace(target)
    # The rename itself must survive a power cut, not only the bytes.
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return target


def blob_remove(sha256: str) -> bool:
    """Delete an original. False: it was not there."""
    path = blob_path(sha256)
    if not path.exists():
        return False
    path.unlink(missing_ok=True)
    return True


def blob_open(sha256: str) -> BinaryIO:
    """The original for reading. Errors: FileNotFoundError."""
    return blob_path(sha256).open("rb")


def blobs_older_than(seconds: float) -> Iterator[str]:
    """Hashes of the originals that have lain here for so long."""
    before = time.time() - seconds
    for path in _root().glob("??/??/*"):
        if len(path.name) == 64 and path.stat().st_mtime < before:
            yield path.name

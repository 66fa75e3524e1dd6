"""Where files lie: a directory that web and worker share, or a bucket. Everything above knows keys alone."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string


class Gone(FileNotFoundError):
    """There is no such file in the store."""


class Store(Protocol):
    """Files by key (`ab/cd/abcd…`). Errors of each: StoreAway when what holds them does not answer."""

    def keep(self, key: str, path: Path) -> None:
        """Take a finished local file in, at once and for good; it may be gone from its place afterwards."""

    def local(self, key: str) -> AbstractContextManager[Path]:
        """The file where a program can open it, within the block. Errors: Gone."""

    def size(self, key: str) -> int | None:
        """Bytes, or None when there is no such file."""

    def remove(self, key: str) -> bool:
        """False: it was not there."""

    def keys(self, prefix: str = "", *, older_than: float = 0) -> Iterator[str]:
        """What begins so and has lain here for so many seconds."""

    def where(self, key: str) -> str:
        """For a message to whoever runs the installation."""


class DirectoryStore:
    """Files below one directory, the key being the path."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep(self, key: str, path: Path) -> None:
        """A rename, which must survive a power cut as the bytes do; the file is on the same file system."""
        target = self._root / key
        while True:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                path.replace(target)
                break
            except FileNotFoundError:
                # `remove` has just taken the folder away because it was empty.
                if not path.exists():
                    raise
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        """Its place itself; whoever opens it late may still find it gone."""
        path = self._root / key
        if not path.is_file():
            raise Gone(key)
        yield path

    def size(self, key: str) -> int | None:
        try:
            return (self._root / key).stat().st_size
        except FileNotFoundError:
            return None

    def remove(self, key: str) -> bool:
        path = self._root / key
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        # A folder may be named by the hash of what is erased, so an empty one goes, too.
        with suppress(OSError):
            path.parent.rmdir()
        return True

    def keys(self, prefix: str = "", *, older_than: float = 0) -> Iterator[str]:
        before = time.time() - older_than
        # Only below the prefix's own folder, which may be one of a hundred thousand.
        top = self._root / prefix.rpartition("/")[0]
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder, name)
                key = str(path.relative_to(self._root))
                if key.startswith(prefix) and (not older_than or _modified(path) <= before):
                    yield key

    def where(self, key: str) -> str:
        return str(self._root / key)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def store() -> Store:
    """The one that the settings name. Errors: ImproperlyConfigured."""
    if not settings.ORIGINALS_BUCKET:
        return DirectoryStore(Path(settings.ORIGINALS_DIR))
    return _bucket(
        settings.ORIGINALS_BUCKET,
        endpoint=settings.ORIGINALS_S3_ENDPOINT,
        region=settings.ORIGINALS_S3_REGION,
        key_id=settings.ORIGINALS_S3_KEY_ID,
        secret=settings.ORIGINALS_S3_SECRET,
    )


@cache
def _bucket(name: str, **given: str) -> Store:
    # boto3 is an extra and takes a third of a second to load: only whoever uses a bucket pays for it.
    try:
        made: Store = import_string("retrieval.bucket.BucketStore")(name, **given)
    except ImportError as exc:
        raise ImproperlyConfigured(
            "ORIGINALS_BUCKET is set, and the package that speaks to buckets is not installed: "
            "pip install --require-hashes -r requirements/s3.txt"
        ) from exc
    return made


def scratch() -> Path:
    """Where files are written before they are kept: beside the directory store, so that keeping is a rename."""
    place = Path(settings.ORIGINALS_DIR) / "incoming"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


@contextmanager
def scratch_file() -> Iterator[Path]:
    """An empty file of our own there, gone afterwards unless it was kept."""
    handle, name = tempfile.mkstemp(dir=scratch())
    os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)

"""Files made from originals and made again when they are gone: pictures of pages, beside the original they show."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings


def _root() -> Path:
    return Path(settings.ORIGINALS_DIR) / "derived"


def derived_folder(sha256: str) -> Path:
    """Where all that was made from this original lies, whether or not there is anything."""
    return _root() / sha256[:2] / sha256


def derived_read(sha256: str, name: str) -> bytes | None:
    """A kept file, or None."""
    try:
        return (derived_folder(sha256) / name).read_bytes()
    except FileNotFoundError:
        return None


def derived_keep(sha256: str, name: str, content: bytes) -> None:
    """Keep a file, atomically; the caller holds `blob_lock` and has seen that the original is still there."""
    folder = derived_folder(sha256)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
    Path(path).replace(folder / name)


def derived_remove(sha256: str) -> int:
    """Delete what was made from this original; how many files that were."""
    folder = derived_folder(sha256)
    if not folder.is_dir():
        return 0
    count = sum(1 for _ in folder.iterdir())
    shutil.rmtree(folder, ignore_errors=True)
    return count


def derived_hashes() -> Iterator[str]:
    """Originals of which something was made."""
    for folder in _root().glob("??/*"):
        yield folder.name

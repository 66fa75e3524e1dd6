"""Files made from originals and made again when they are gone: pictures of pages, stored beside what they show."""

from collections.abc import Iterator

from retrieval.stores import Gone, scratch_file, store


def _prefix(sha256: str) -> str:
    return f"derived/{sha256[:2]}/{sha256}/"


def derived_read(sha256: str, name: str) -> bytes | None:
    """A kept file, or None."""
    try:
        with store().local(_prefix(sha256) + name) as path:
            return path.read_bytes()
    except Gone:
        return None


def derived_keep(sha256: str, name: str, content: bytes) -> None:
    """Keep a file, atomically; the caller holds `blob_lock` and has seen that the original is still there."""
    with scratch_file() as path:
        path.write_bytes(content)
        store().keep(_prefix(sha256) + name, path)


def derived_remove(sha256: str) -> int:
    """Delete what was made from this original; how many files that were."""
    place = store()
    return sum(place.remove(key) for key in list(place.keys(_prefix(sha256))))


def derived_hashes() -> Iterator[str]:
    """Originals of which something was made, each once."""
    last = ""
    for key in sorted(store().keys("derived/")):
        sha256 = key.split("/")[2]
        if sha256 != last:
            yield sha256
        last = sha256

"""What can stop the embedded stack. Every message says what happened, what it means and what to do.

EmbeddedError
├── AlreadyRunning     another supervisor holds this data directory
├── Interrupted        asked to stop while still starting
├── PartFailed         a child died or never became ready
└── WeightsUnavailable the model files could not be fetched, read or verified
"""

import errno
from pathlib import Path


class EmbeddedError(Exception):
    """The embedded stack cannot go on."""


class AlreadyRunning(EmbeddedError):
    """Another supervisor holds this data directory."""


class Interrupted(EmbeddedError):
    """Stopped on request before everything was up."""


class PartFailed(EmbeddedError):
    """A part of the stack died or did not become ready."""


class WeightsUnavailable(EmbeddedError):
    """Model files could not be fetched, read or verified."""


_DISK_WORDS = ("No space left on device", "Disk quota exceeded", "Check free disk space")


def disk_sentence(path: Path) -> str:
    """The sentence for a full disk, wherever it was noticed."""
    return (
        f"The disk that holds {path} is full. Nothing was lost; free some space (about 1 GB) and start again."
    )


def known_reason(text: str, path: Path) -> str:
    """What a program's own words mean, when they name a common trouble; else empty."""
    if any(words in text for words in _DISK_WORDS):
        return disk_sentence(path)
    if "ddress already in use" in text:
        return "Its port was taken by another program meanwhile; start again."
    return ""


def os_sentence(exc: OSError, path: Path) -> str:
    """An OSError in words, a full disk by name."""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_sentence(path)
    return f"{exc.strerror or exc} at {exc.filename or path}."

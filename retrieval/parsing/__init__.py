"""Reading files: bytes of any origin in, pages of text out, in a process that may die alone."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PAGE_BREAK, Block, Page, Reading
from retrieval.parsing.limits import DEFAULT, Limits
from retrieval.parsing.sandbox import read_confined
from retrieval.parsing.source import Source

__all__ = ["PAGE_BREAK", "VERSION", "Block", "Limits", "Page", "ReadError", "Reading", "read"]

VERSION = 5
"""Raised whenever a reader takes another text from the same file, so that documents read before can be told."""


def read(
    content: Path | bytes,
    name: str,
    *,
    password: str | None = None,
    limits: Limits = DEFAULT,
    heartbeat: Callable[[int, int], None] | None = None,
) -> Reading:
    """What a file holds, read as what it is and not as what it is called.

    `heartbeat` is called with (page, pages) at each page that takes its time, and with zeros every two seconds; what it
    raises stops the reading.
    Errors: ReadError whose message says what happened, what it means and what to do.
    """
    if isinstance(content, Path):
        return read_confined(Source(content, name, password, limits), heartbeat=heartbeat)
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return read_confined(Source(Path(file.name), name, password, limits), heartbeat=heartbeat)

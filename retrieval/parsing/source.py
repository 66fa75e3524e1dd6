"""The one interface of all readers: a Source in, a Reading out, ReadError when it cannot be."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading
from retrieval.parsing.limits import DEFAULT, Limits

Parser = Callable[["Source"], Reading]


class Budget:
    """What one upload may still unpack, shared by everything inside it: a hundred small bombs are one big one."""

    def __init__(self, limits: Limits) -> None:
        self.unpacked = limits.unpacked
        self.members = limits.members


_WHOLE: dict[str, Any] = {"at": lambda number: None, "skip": frozenset()}
"""Page numbers are those of the outermost file."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. The name is shown in messages and breaks ties between text formats, nothing else."""

    path: Path
    name: str
    password: str | None = None
    limits: Limits = DEFAULT
    parse: Parser | None = None
    """Reads what is inside: attachments, members of an archive."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Called while slow work goes on: pages done and pages in all."""
    at: Callable[[int], None] = lambda number: None
    """Called before each page is read, so that one that takes the process with it can be named."""
    skip: frozenset[int] = frozenset()
    """Pages that did, and are left out."""
    depth: int = 0
    """How many files this one is packed in."""
    budget: Budget = field(default_factory=lambda: Budget(DEFAULT))

    def data(self) -> bytes:
        """All bytes; the size was checked before."""
        return self.path.read_bytes()

    def inside(self, data: bytes, name: str) -> Reading:
        """Read a file packed in this one. Errors: ReadError, also for too many layers."""
        if self.depth >= self.limits.depth or self.parse is None:
            raise ReadError(
                f"“{name}” is packed more than {self.limits.depth} layers deep and was not opened. "
                "Unpack it and upload it by itself.",
                reason="bomb",
            )
        if not data:
            raise ReadError(f"“{name}” is empty, so there is nothing to read.", reason="empty")
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return self.parse(replace(self, path=Path(file.name), name=name, depth=self.depth + 1, **_WHOLE))

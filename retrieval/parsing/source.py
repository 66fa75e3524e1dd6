"""The one interface of all parsers: a Source in, a Reading out, ReadError when it cannot be."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retrieval.parsing.blocks import Reading
from retrieval.parsing.limits import DEFAULT, Limits


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. The name is shown in messages and breaks ties between text formats, nothing else."""

    path: Path
    name: str
    password: str | None = None
    limits: Limits = DEFAULT

    def data(self) -> bytes:
        """All bytes; the size was checked before."""
        return self.path.read_bytes()


Parser = Callable[[Source], Reading]

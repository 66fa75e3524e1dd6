"""What a file looks like before it is read, and the declaration by which a reader says what it takes."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import olefile

from retrieval.errors import ReadError
from retrieval.parsing.archive import DAMAGED, archive_members
from retrieval.parsing.decoding import decode, looks_binary
from retrieval.parsing.source import Parser, Source

SURE = 100
"""The content says so: a signature, or the parts an archive of this kind must have."""
LIKELY = 50
"""The content allows it and the name says so, or the content has its look."""
FALLBACK = 1
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"


class Clues:
    """A file's beginnings, looked at only as far as somebody asks."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.suffix = PurePath(source.name).suffix.lower()
        with source.path.open("rb") as file:
            self.head = file.read(4096)

    @cached_property
    def members(self) -> frozenset[str]:
        """Names in a ZIP archive; empty for other files. Errors: ReadError when it is damaged or hostile."""
        if not self.head.startswith((_ZIP, _EMPTY_ZIP)):
            return frozenset()
        try:
            with zipfile.ZipFile(self.source.path) as archive:
                return frozenset(archive_members(archive, self.source))
        except (*DAMAGED, RuntimeError) as exc:
            raise ReadError(
                f"“{self.source.name}” begins like an Office document, an e-book or a ZIP archive but is damaged "
                f"inside ({exc}). Open it in the program that made it and save it again."
            ) from exc

    @cached_property
    def mimetype(self) -> str:
        """What the member `mimetype` of OpenDocument files and e-books says."""
        if "mimetype" not in self.members:
            return ""
        try:
            with zipfile.ZipFile(self.source.path) as archive, archive.open("mimetype") as member:
                return member.read(100).decode("ascii", errors="replace").strip()
        except (*DAMAGED, RuntimeError):
            return ""

    @cached_property
    def streams(self) -> frozenset[str]:
        """Names of the streams in an old Office container, their paths joined by `/`; empty for other files."""
        if not self.head.startswith(olefile.MAGIC):
            return frozenset()
        try:
            with olefile.OleFileIO(self.source.path) as ole:
                return frozenset("/".join(path) for path in ole.listdir())
        except (OSError, ValueError, IndexError) as exc:
            raise ReadError(
                f"“{self.source.name}” begins like an old Office file but is damaged inside. "
                "Open it in the program that made it and save it again."
            ) from exc

    @cached_property
    def text(self) -> str:
        """The first characters, decoded on the whole file; empty for what is no text."""
        if self.members or self.streams or looks_binary(data := self.source.data()):
            return ""
        return decode(data).text[:20_000]


@dataclass(frozen=True, slots=True)
class Format:
    """A reader's declaration: what it is called, what it takes and how it reads."""

    name: str
    mime: str
    label: str
    """For messages: "PDF", "Word (.docx, .doc)"; empty when another format's label names it too."""
    claims: Callable[[Clues], int]
    """How sure it is that a file is its own: 0 not at all, else FALLBACK, LIKELY or SURE; the surest reads it."""
    read: Parser
    picture: Callable[[Source, int], bytes] | None = None
    """WebP of one page by its number, where the format has pages that can be shown."""


def by_text(*suffixes: str) -> Callable[[Clues], int]:
    """For formats that are plain text: the name decides."""
    return lambda clues: LIKELY if clues.suffix in suffixes and clues.text else 0

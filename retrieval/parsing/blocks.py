"""What a parser yields: pages of text, and blocks that mark stretches of it. Pure values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["heading", "paragraph", "table", "list", "code"]

Box = tuple[float, float, float, float]
"""Left, top, right, bottom as fractions of the page as it is shown, from its upper left corner."""

LOW_CONFIDENCE = 0.85
"""Recognised text below this is shown with a warning."""

PAGE_BREAK = "\n\n"
"""Between the pages of the whole document text."""

_BLOCK_BREAK = "\n\n"
# Control characters other than tab and newline, and halves of surrogate pairs: no text, and PostgreSQL refuses some.
# The colours of a terminal are a sequence of which only the first character is one.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\r\x0b\x0c\u2028\u2029", "\n"),
        # Marks without a shape of their own part words where nobody sees it: hyphens that only may stand, and the like.
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
        # One that does not break is looked for as any other.
        "\u2011": "-",
        # Signs of symbol fonts, which stand at places for private use.
        **dict(zip("\uf0b7\uf0a7\uf0d8\uf0fc\uf06e\uf0e0\uf0b0", "•▪➢✓■→°", strict=True)),
    }
)


@dataclass(frozen=True, slots=True)
class Block:
    """One structural part of a page: `page.text[start:end]` is its text."""

    kind: Kind
    start: int
    end: int
    heading: tuple[str, ...] = ()
    """Headings above this block, outermost first; a heading's own path includes itself."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where a stretch of a page's text stands on the page: `page.text[start:end]` is inside `box`."""

    start: int
    end: int
    box: Box


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    """1-based; a format without pages has one page."""
    text: str
    blocks: tuple[Block, ...]
    lines: tuple[Line, ...] = ()
    """In the order of the text; empty where the format has no places on a page."""
    ocr: bool = False
    """Whether the text was recognised from a picture."""
    confidence: float | None = None
    """Of the recognition, 0 to 1, weighted by length; None where nothing was recognised."""
    aspect: float | None = None
    """Width by height of the page as it is shown; None where it cannot be shown."""

    def boxes(self, start: int, end: int) -> tuple[Box, ...]:
        """Where `text[start:end]` stands: a box for each line it touches, to be marked on the page's picture."""
        return tuple(line.box for line in self.lines if line.start < end and start < line.end)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything the machine read in one file."""

    format: str
    mime: str
    pages: tuple[Page, ...]
    paged: bool
    """Whether page numbers mean something to a person."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole document text, to which chunk and passage offsets refer."""
        return PAGE_BREAK.join(page.text for page in self.pages)


def clean(text: str) -> str:
    """Line ends as \\n, no control characters and marks that nobody sees, no blanks at line ends."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n").translate(_PLAIN))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


class PageBuilder:
    """Grows one page block by block, so that offsets are right by construction.

    Headings hold across pages of one document: hand the `path` of a page to the next one.
    """

    def __init__(self, number: int = 1, *, above: Sequence[tuple[int, str]] = ()) -> None:
        self.number = number
        self._path: list[tuple[int, str]] = list(above)
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    def add(self, kind: Kind, text: str, *, level: int = 1) -> int:
        """Append a block; blank text is nothing. `level` counts only for headings (1 is the outermost).

        Returns where in the page's text the block begins.
        """
        text = clean(text)
        if not text.strip():
            return self._length
        if kind == "heading":
            self._path = [item for item in self._path if item[0] < level]
            self._path.append((level, " ".join(text.split())))
        if self._parts:
            self._length += len(_BLOCK_BREAK)
        path = tuple(title for _, title in self._path)
        self._blocks.append(Block(kind, self._length, self._length + len(text), path))
        self._parts.append(text)
        start = self._length
        self._length += len(text)
        return start

    def insert(self, page: Page, *, title: str = "", level: int = 2) -> None:
        """Append another document's page under a heading, its own headings below that one."""
        if title:
            self.add("heading", title, level=level)
        for block in page.blocks:
            below = level + len(block.heading) if block.kind == "heading" else 1
            self.add(block.kind, page.text[block.start : block.end], level=below)

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        """Headings in force at the end, with their levels: where the next page goes on."""
        return tuple(self._path)

    def page(self, **more: Any) -> Page:
        """The page as it stands; `more` are further fields of Page."""
        return Page(self.number, _BLOCK_BREAK.join(self._parts), tuple(self._blocks), **more)


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of cells, ` | ` between them, so that a row can be read and cited by itself."""
    lines = (" | ".join(" ".join(cell.split()) for cell in row) for row in rows)
    return "\n".join(line for line in lines if line.strip(" |"))


def page_ranges(numbers: list[int]) -> str:
    """`page 3`, `pages 3–5, 9`; long lists are cut."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs[:8]) + (" …" if len(runs) > 8 else "")
    return f"page{'s' if len(numbers) > 1 else ''} {shown}"

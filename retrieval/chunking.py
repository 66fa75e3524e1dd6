"""Cutting a document into chunks: by its structure first, then by tokens. Pure.

Every chunk is a stretch of the document text: `text[start:end]` equals it to the character, so that a citation
opens at the very words. What a piece needs to be understood alone (the headings above it, the header row of its
table) stands beside it as context and is embedded with it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from retrieval.parsing.blocks import PAGE_BREAK, Block, Kind, Page

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
_LINE = re.compile(r"\n+")
_WORD = re.compile(r"\s+")
_CAPTION = 400
"""Characters of a sentence before a table, or of its header row, that go with each of its pieces."""
_CHARACTERS = 40
"""Length of the pieces a text without any blank is cut into."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes in tokens of the embedder."""

    size: int = 300
    overlap: int = 40
    """Of running text, between neighbours; tables and code are continued without."""
    small: int = 100
    """A chunk below this goes on over the next heading instead of ending before it."""


@dataclass(frozen=True, slots=True)
class ChunkCut:
    """A chunk as it was cut, before it has a row."""

    index: int
    start: int
    end: int
    text: str
    page: int
    """Number of the page on which it begins."""
    heading: str
    """Context: heading path; for a piece of a table the sentence or caption before it and its header row."""
    tokens: int

    @property
    def embedded_text(self) -> str:
        """Its context and its text, as they are sent to the embedder."""
        return embedded_text(self.heading, self.text)


def embedded_text(heading: str, text: str) -> str:
    """What is sent to the embedder for a chunk: the context and the text."""
    return f"{heading}\n{text}" if heading else text


@dataclass(frozen=True, slots=True)
class _Atom:
    """The smallest stretch that is not cut any more."""

    start: int
    end: int
    tokens: int
    kind: Kind
    path: tuple[str, ...]
    header: str
    """What a row of a table needs beside it: the sentence before the table and the header row, unless it is that."""


def estimate_tokens(text: str) -> int:
    """Tokens of a multilingual subword tokenizer, estimated on the safe side: used where the real one is not at hand.

    Long words count per five characters, digits and East Asian characters nearly one by one.
    """
    return sum(map(_TOKENS.__getitem__, text.split()))


class _Tokens(dict[str, int]):
    """Of what stands between blanks; what is short is remembered, some megabytes of it."""

    def __missing__(self, word: str) -> int:
        tokens = sum(map(_tokens, _PIECES.findall(word)))
        if len(word) <= _SHORT:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[word] = tokens
        return tokens


_SHORT, _REMEMBERED = 30, 50_000
_TOKENS = _Tokens()


def _tokens(piece: str) -> int:
    first = piece[0]
    if first.isdigit():
        return (len(piece) + 1) // 2
    if first >= "\u0e00":
        return (len(piece) * 4 + 4) // 5
    if first.isalpha():
        return (len(piece) + 4) // 5 if first < "\u0250" else (len(piece) + 3) // 4
    return 1


_PIECES = re.compile(r"\d+|[\u0e00-\U0003ffff]+|[^\W\d_\u0e00-\U0003ffff]+|[^\s\w]|_")


def chunk(
    pages: Sequence[Page],
    *,
    count: Callable[[str], int] = estimate_tokens,
    settings: Settings | None = None,
) -> list[ChunkCut]:
    """Chunks of a document in order; `start` and `end` refer to the pages joined by PAGE_BREAK."""
    return list(_cuts(pages, count, settings or Settings()))


def _cuts(pages: Sequence[Page], count: Callable[[str], int], settings: Settings) -> Iterator[ChunkCut]:
    text = PAGE_BREAK.join(page.text for page in pages)
    starts = _page_starts(pages)
    for index, group in enumerate(_groups(_atoms(pages, starts, count, settings), settings)):
        start, end = group[0].start, group[-1].end
        yield ChunkCut(
            index=index,
            start=start,
            end=end,
            text=text[start:end],
            page=pages[bisect_right(starts, start) - 1].number,
            heading=_context(group),
            tokens=sum(atom.tokens for atom in group),
        )


def _page_starts(pages: Sequence[Page]) -> list[int]:
    starts, at = [], 0
    for page in pages:
        starts.append(at)
        at += len(page.text) + len(PAGE_BREAK)
    return starts


def _atoms(
    pages: Sequence[Page], starts: Sequence[int], count: Callable[[str], int], settings: Settings
) -> Iterator[_Atom]:
    for page, offset in zip(pages, starts, strict=True):
        before = ""
        for block in page.blocks:
            yield from _block_atoms(page.text, block, offset, count, settings.size, before)
            text = page.text[block.start : block.end]
            before = text if block.kind == "paragraph" and len(text) <= _CAPTION else ""


def _block_atoms(
    text: str, block: Block, offset: int, count: Callable[[str], int], size: int, before: str
) -> Iterator[_Atom]:
    whole = text[block.start : block.end]
    # Rows and lines of code belong together; sentences are what running text may be cut between.
    cut = _LINE if block.kind in {"table", "code", "list"} else _SENTENCE
    table = block.kind == "table"
    header = _header_row(whole) if table else ""
    caption = " ".join(before.split()) if table else ""
    for start, end, tokens in _split(whole, cut, count, size):
        yield _Atom(
            start=offset + block.start + start,
            end=offset + block.start + end,
            tokens=max(1, tokens),
            kind=block.kind,
            path=block.heading,
            header="\n".join(filter(None, (caption, header if start > 0 else ""))),
        )


def _header_row(table: str) -> str:
    """The lines up to the first with more than one cell: a caption inside the table, and the header."""
    lines: list[str] = []
    for line in table.split("\n")[:3]:
        lines.append(line)
        if " | " in line:
            return "\n".join(lines)[:_CAPTION]
    return ""


def _split(
    text: str, cut: re.Pattern[str], count: Callable[[str], int], size: int
) -> Iterator[tuple[int, int, int]]:
    """Spans without surrounding blanks with their tokens, at most `size`: by `cut`, else by words, else by length."""
    for start, end in _spans(text, cut):
        tokens = count(text[start:end])
        if tokens <= size:
            yield start, end, tokens
            continue
        for first, last in _spans(text[start:end], _WORD):
            for at in range(start + first, start + last, _CHARACTERS):
                stop = min(at + _CHARACTERS, start + last)
                yield at, stop, count(text[at:stop])


def _spans(text: str, cut: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for match in cut.finditer(text):
        if text[at : match.start()].strip():
            yield _trimmed(text, at, match.start())
        at = match.end()
    if text[at:].strip():
        yield _trimmed(text, at, len(text))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without blanks at either end; the closing quote that a sentence mark leaves behind stays with it."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _groups(atoms: Iterator[_Atom], settings: Settings) -> Iterator[list[_Atom]]:
    """Fill chunks up to `size`; end early before a heading, and carry the overlap of running text along."""
    held: list[_Atom] = []
    tokens = fresh = 0
    for atom in atoms:
        new_section = atom.kind == "heading" and bool(held) and held[-1].kind != "heading"
        full = tokens + atom.tokens > settings.size
        if fresh and (full or (new_section and tokens >= settings.small)):
            yield held
            held = [] if new_section else _overlap(held, atom, settings)
            tokens, fresh = sum(a.tokens for a in held), 0
            if tokens + atom.tokens > settings.size:
                held, tokens = [], 0
        held.append(atom)
        tokens += atom.tokens
        fresh += 1
    if fresh:
        yield held


def _overlap(held: Sequence[_Atom], following: _Atom, settings: Settings) -> list[_Atom]:
    if following.kind in {"table", "code"}:
        return []
    kept: list[_Atom] = []
    room = settings.overlap
    for atom in reversed(held):
        if atom.tokens > room or atom.kind in {"table", "code"}:
            break
        kept.insert(0, atom)
        room -= atom.tokens
    # A whole chunk as overlap would never move on.
    return kept if len(kept) < len(held) else []


def _context(group: Sequence[_Atom]) -> str:
    """The headings that all atoms share, and the header of a table that began in an earlier chunk."""
    path = list(group[0].path)
    for atom in group[1:]:
        shared = 0
        while shared < min(len(path), len(atom.path)) and path[shared] == atom.path[shared]:
            shared += 1
        del path[shared:]
    # A heading that stands in the chunk itself need not be said twice.
    if group[0].kind == "heading":
        del path[max(0, len(group[0].path) - 1) :]
    context = " › ".join(path)
    header = group[0].header
    return f"{context}\n{header}" if context and header else context or header

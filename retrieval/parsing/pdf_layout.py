"""Blocks of a PDF page, guessed from its lines: a PDF has no paragraphs, only text at places. Pure."""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from retrieval.parsing.blocks import Kind, Page, PageBuilder

_LIST_ITEM = re.compile(r"^\s*(?:[•◦▪‣·–*-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_NUMBERING = re.compile(r"^[\d.\s]+")
_SENTENCE_END = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")


def pdf_pages(
    pages: Iterable[tuple[int, str]], outline: Mapping[int, Sequence[tuple[int, str]]]
) -> tuple[Page, ...]:
    """Pages with blocks from (number, text); lines that equal a bookmark of their page become headings.

    `outline`: by page number, (level from 1, title).
    """
    built: list[Page] = []
    above: tuple[tuple[int, str], ...] = ()
    for number, text in pages:
        builder = PageBuilder(number, above=above)
        titles = {_key(title): level for level, title in outline.get(number, ())}
        for kind, part, level in _parts(text, titles):
            builder.add(kind, part, level=level)
        above = builder.path
        built.append(builder.page())
    return tuple(built)


def _parts(text: str, titles: Mapping[str, int]) -> Iterator[tuple[Kind, str, int]]:
    """Paragraphs, lists and headings of a page: kind, text, level."""
    lines = text.split("\n")
    lengths = [len(line) for line in lines if line.strip()]
    usual = statistics.quantiles(lengths, n=4)[2] if len(lengths) > 3 else 80
    kind: Kind = "paragraph"
    held: list[str] = []
    for line in lines:
        level = titles.get(_key(line), 0)
        if held and (level or not line.strip() or _is_new(kind, held[-1], line, usual)):
            yield kind, "\n".join(held), 1
            held = []
        if level:
            yield "heading", line, level
        elif line.strip():
            if not held:
                kind = "list" if _LIST_ITEM.match(line) else "paragraph"
            held.append(line)
    if held:
        yield kind, "\n".join(held), 1


def _is_new(kind: Kind, last: str, line: str, usual: float) -> bool:
    """Whether a line begins another block than the one that `last` belongs to."""
    ended = bool(_SENTENCE_END.search(last))
    item = bool(_LIST_ITEM.match(line))
    if kind == "list":
        return ended and not item
    # A paragraph ends where a sentence closes short of the margin.
    return item or (ended and len(last) < 0.75 * usual)


def _key(line: str) -> str:
    """A heading as bookmark and page agree on it: without numbering, blanks and case."""
    return _NUMBERING.sub("", " ".join(line.split())).casefold()

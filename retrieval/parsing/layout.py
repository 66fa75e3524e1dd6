"""Blocks of a page whose text stands at places, as in PDFs and recognised pictures. Pure.

There are no paragraphs in such a page, only segments: stretches of one line without a wide gap. Rows of segments that
share free columns between them are either columns of running text, read one after the other, or a table, read by rows.
"""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval.parsing.bands import (
    LINE_JOIN,
    WIDE,
    Row,
    Segment,
    Span,
    band_at,
    bottom,
    columns_in,
    columns_of,
    fits,
    is_numbered,
    is_prose,
    is_table,
    near,
    rows_of,
    top,
)
from retrieval.parsing.blocks import Box, Kind, Line, Page, PageBuilder

_LIST_ITEM = re.compile(r"^\s*(?:[•◦▪‣·–*●○■□-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_NUMBERING = re.compile(r"^[\d.\s]+")
_SENTENCE_END = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """A block on its way: its lines with their segments."""

    kind: Kind
    lines: list[Row]
    level: int = 1
    columns: tuple[Span, ...] = ()


def layout(
    segments: Sequence[Segment],
    builder: PageBuilder,
    *,
    titles: Mapping[str, int] | None = None,
    asides: Sequence[Sequence[Segment]] = (),
    extra: Sequence[str] = (),
    **more: Any,
) -> Page:
    """The page of `builder` from its segments.

    `titles`: bookmarks of this page by `title_key`, with their level; a line that equals one is a heading. `asides`:
    what stands in another direction, read after the rest. `extra`: texts without a place, added at the end. `more`:
    further fields of Page.
    """
    shown: list[Line] = []
    for found in filter(None, (segments, *asides)):
        usual = statistics.median(segment.height for segment in found)
        for part in _parts(list(found), usual, titles or {}, 0):
            _add(builder, part, shown)
    for text in extra:
        builder.add("paragraph", text)
    return builder.page(lines=tuple(shown), **more)


def title_key(line: str) -> str:
    """A heading as bookmark and page agree on it: without numbering, blanks and case."""
    return _NUMBERING.sub("", " ".join(line.split())).casefold()


def _add(builder: PageBuilder, part: _Part, shown: list[Line]) -> None:
    """Add a block and where its lines stand."""
    text = ""
    lines: list[tuple[int, int, Box]] = []
    for row in part.lines:
        piece = _row_text(row, part.columns)
        if not piece:
            continue
        if text.endswith(LINE_JOIN):
            # A hyphen that only parts a word at the line's end goes; before a capital or a digit it belongs there.
            text = text[:-1] if piece[0].islower() else text[:-1] + "-"
        elif text:
            text += "\n"
        lines.append((len(text), len(text) + len(piece.rstrip(LINE_JOIN)), _around(row)))
        text += piece
    text = text[:-1] + "-" if text.endswith(LINE_JOIN) else text
    start = builder.add(part.kind, text, level=part.level)
    shown.extend(Line(start + first, start + last, box) for first, last, box in lines)


def _row_text(row: Row, columns: tuple[Span, ...]) -> str:
    if not columns:
        if len(row) == 1:
            return row[0].text
        return " ".join(segment.text for segment in row).replace(f"{LINE_JOIN} ", "")
    cells = ["" for _ in columns]
    for segment, at in zip(row, columns_in(row, columns), strict=True):
        cells[at] = f"{cells[at]} {segment.text.replace(LINE_JOIN, '-')}".strip()
    while cells and not cells[-1]:
        cells.pop()
    return " | ".join(cells)


def _around(row: Row) -> Box:
    if len(row) == 1:
        return row[0].box
    boxes = [segment.box for segment in row]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _parts(segments: Row, usual: float, titles: Mapping[str, int], depth: int) -> Iterator[_Part]:
    """Blocks in reading order."""
    rows = rows_of(segments)
    plain: list[Row] = []
    at = 0
    while at < len(rows):
        end, gutters = band_at(rows, at, usual)
        if not gutters or depth >= _DEEPEST:
            plain.append(rows[at])
            at += 1
            continue
        band = rows[at:end]
        columns = columns_of(band, gutters)
        if is_prose(band, columns):
            # One column may begin higher than the others.
            while plain and fits(plain[-1], columns) and near(plain[-1], band[0], usual):
                band.insert(0, plain.pop())
            # What stands apart at the top or the bottom of the page runs across the columns.
            if at == depth == 0 and len(band) > 3 and _gap(band, 1) > 1.5 * usual:
                plain.append(band.pop(0))
            if end == len(rows) and depth == 0 and len(band) > 3 and _gap(band, len(band) - 1) > 1.5 * usual:
                band.pop()
                end -= 1
            yield from _running(plain, usual, titles)
            yield from _by_columns(band, columns, usual, titles, depth)
        elif is_table(band, columns, usual) and not is_numbered(band, columns):
            # What stands alone under a table is the text after it.
            while (
                not _goes_on(band, len(band) - 1, columns, usual) and len(_cells_of(band[-1], columns)) == 1
            ):
                band.pop()
                end -= 1
            yield from _running(plain, usual, titles)
            yield _Part("table", _joined_rows(band, columns, usual), columns=columns)
        else:
            plain.extend(band)
            at = end
            continue
        plain = []
        at = end
    yield from _running(plain, usual, titles)


def _by_columns(
    band: Sequence[Row], columns: tuple[Span, ...], usual: float, titles: Mapping[str, int], depth: int
) -> Iterator[_Part]:
    inside: list[Row] = [[] for _ in columns]
    for row in band:
        for segment, at in zip(row, columns_in(row, columns), strict=True):
            inside[at].append(segment)
    for segments in inside:
        yield from _parts(segments, usual, titles, depth + 1)


def _joined_rows(band: Sequence[Row], columns: tuple[Span, ...], usual: float) -> list[Row]:
    """Lines of one cell, close above or under the row that they belong to, go with it."""
    rows: list[Row] = []
    before: Row = []
    for at, row in enumerate(band):
        if rows and not before and _goes_on(band, at, columns, usual):
            rows[-1] = [*rows[-1], *row]
        elif _begins(band, at, columns, usual):
            before += row
        else:
            rows.append([*before, *row])
            before = []
    return rows


def _cells_of(row: Row, columns: tuple[Span, ...]) -> set[int]:
    return set(columns_in(row, columns))


def _goes_on(band: Sequence[Row], at: int, columns: tuple[Span, ...], usual: float) -> bool:
    """Whether a row with one cell only, not in the first column, goes on with that cell of the row above."""
    return (
        at > 0
        and len(columns) > 2
        and _gap(band, at) < 0.3 * usual
        and len(filled := _cells_of(band[at], columns)) == 1
        and 0 not in filled
    )


def _begins(band: Sequence[Row], at: int, columns: tuple[Span, ...], usual: float) -> bool:
    """Whether a row with one cell only is the beginning of a cell whose row is written at half its height."""
    if not 0 < at < len(band) - 1 or len(columns) < 3:
        return False
    filled, below = _cells_of(band[at], columns), _gap(band, at + 1)
    return (
        len(filled) == 1
        and 0 not in filled
        and below < 0.3 * usual
        and _gap(band, at) > 2 * max(0.0, below)
        and 0 in _cells_of(band[at + 1], columns)
    )


def _gap(band: Sequence[Row], at: int) -> float:
    """Between a row and the one above."""
    return top(band[at]) - bottom(band[at - 1])


def _running(rows: Sequence[Row], usual: float, titles: Mapping[str, int]) -> Iterator[_Part]:
    """Paragraphs, lists and headings of running text."""
    if not rows:
        return
    texts = [_row_text(row, ()) for row in rows]
    lengths = [len(text) for text in texts if text]
    long = statistics.quantiles(lengths, n=4)[2] if len(lengths) > 3 else 80
    held: list[Row] = []
    kind: Kind = "paragraph"
    last = ""
    for row, text in zip(rows, texts, strict=True):
        level = (titles and titles.get(title_key(text), 0)) or _big(row, text, usual)
        if held and (level or _apart(held[-1], row, usual) or _is_new(kind, last, text, long)):
            yield _Part(kind, held)
            held = []
        if level:
            yield _Part("heading", [row], level)
        else:
            if not held:
                kind = "list" if _LIST_ITEM.match(text) else "paragraph"
            held.append(row)
        last = text
    if held:
        yield _Part(kind, held)


def _big(row: Row, text: str, usual: float) -> int:
    """Level of a heading by its size, 0 for text that is no heading."""
    size = max(segment.height for segment in row) / usual if usual else 1.0
    # East Asian fonts stand taller in a line of the same size.
    if (
        size < 1.25
        or (size < 1.6 and WIDE.search(text))
        or len(text) > 120
        or not any(char.isalpha() for char in text)
    ):
        return 0
    return 1 if size > 1.9 else 2 if size > 1.5 else 3


def _apart(above: Row, below: Row, usual: float) -> bool:
    return top(below) - bottom(above) > 0.9 * usual


def _is_new(kind: Kind, last: str, line: str, long: float) -> bool:
    """Whether a line begins another block than the one that `last` belongs to."""
    ended = bool(_SENTENCE_END.search(last))
    item = bool(_LIST_ITEM.match(line))
    if kind == "list":
        return ended and not item
    # A paragraph ends where a sentence closes short of the margin.
    return item or (ended and len(last) < 0.75 * long)

"""Blocks of a page whose text stands at places, as in PDFs and recognised pictures. Pure.

There are no paragraphs in such a page, only segments: stretches of one line without a wide gap. Rows of segments that
share free columns between them are either columns of running text, read one after the other, or a table, read by rows.
"""

import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrieval.parsing.blocks import Box, Kind, Line, Page, PageBuilder, clean

LINE_JOIN = "\x02"
"""At the end of a segment: its last word goes on in the next line."""
Span = tuple[float, float]
_LIST_ITEM = re.compile(r"^\s*(?:[•◦▪‣·–*●○■□-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_NUMBERING = re.compile(r"^[\d.\s]+")
_SENTENCE_END = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufefc]")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Text at a place: left, top, right, bottom with y downward, in any unit as long as all are in the same."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    box: Box
    """The same as fractions of the page as shown."""

    @property
    def height(self) -> float:
        return self.y1 - self.y0


Row = list[Segment]


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
    extra: Sequence[str] = (),
    ocr: bool = False,
    confidence: float | None = None,
) -> Page:
    """The page of `builder` from its segments.

    `titles`: bookmarks of this page by `title_key`, with their level; a line that equals one is a heading. `extra`:
    texts without a place, added at the end.
    """
    shown: list[Line] = []
    if segments:
        usual = statistics.median(segment.height for segment in segments)
        for part in _parts(list(segments), usual, titles or {}, 0):
            _add(builder, part, shown)
    for text in extra:
        builder.add("paragraph", text)
    return builder.page(lines=tuple(shown), ocr=ocr, confidence=confidence)


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
        return " ".join(segment.text for segment in row).replace(f"{LINE_JOIN} ", "")
    cells = ["" for _ in columns]
    for segment in row:
        at = _column(segment, columns)
        cells[at] = f"{cells[at]} {segment.text.replace(LINE_JOIN, '-')}".strip()
    while cells and not cells[-1]:
        cells.pop()
    return " | ".join(cells)


def segment_text(text: str) -> str:
    """Text of a segment on one line, without control characters; a mark that it is parted stays at its end."""
    if text.isprintable() and "  " not in text:
        return text
    joined = text.endswith(LINE_JOIN)
    text = " ".join(clean(text.replace(LINE_JOIN, "-" if not joined else "")).split())
    return text + LINE_JOIN if joined and text else text


def _column(segment: Segment, columns: tuple[Span, ...]) -> int:
    """Number of the column that its middle is in or next to."""
    middle = (segment.x0 + segment.x1) / 2
    last = len(columns) - 1
    backward = last > 0 and columns[0][0] > columns[1][0]
    ordered = columns[::-1] if backward else columns
    at = 0
    while at < last and middle > (ordered[at][1] + ordered[at + 1][0]) / 2:
        at += 1
    return last - at if backward else at


def _around(row: Row) -> Box:
    boxes = [segment.box for segment in row]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _parts(segments: Row, usual: float, titles: Mapping[str, int], depth: int) -> Iterator[_Part]:
    """Blocks in reading order."""
    rows = _rows(segments)
    plain: list[Row] = []
    at = 0
    while at < len(rows):
        end, gutters = _band(rows, at, usual)
        if not gutters or depth >= _DEEPEST:
            plain.append(rows[at])
            at += 1
            continue
        band = rows[at:end]
        columns = _columns(band, gutters)
        if _is_prose(band, columns):
            # One column may begin higher than the others.
            while plain and _fits(plain[-1], columns) and _near(plain[-1], band[0], usual):
                band.insert(0, plain.pop())
            yield from _running(plain, usual, titles)
            yield from _by_columns(band, columns, usual, titles, depth)
        elif _is_table(band, columns, usual):
            # What stands alone under a table is the text after it.
            while len({_column(segment, columns) for segment in band[-1]}) == 1:
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


def _rows(segments: Row) -> list[Row]:
    """Segments at one height, from top to bottom, each row in the direction of its script."""
    rows: list[Row] = []
    low = high = 0.0
    for segment in sorted(segments, key=lambda s: (s.y0 + s.y1) / 2):
        middle = (segment.y0 + segment.y1) / 2
        if rows and low <= middle <= high and segment.height < 2.5 * (high - low) + 1e-9:
            rows[-1].append(segment)
        else:
            rows.append([segment])
            quarter = segment.height / 4
            low, high = segment.y0 + quarter, segment.y1 - quarter
    for row in rows:
        right_to_left = 2 * sum(bool(_RTL.search(segment.text)) for segment in row) > len(row)
        row.sort(key=lambda s: -s.x1 if right_to_left else s.x0)
    return rows


def _band(rows: Sequence[Row], at: int, usual: float) -> tuple[int, list[Span]]:
    """How far down the free columns inside row `at` go on: the row after the last, and those columns."""
    gutters = _gaps(rows[at], usual)
    end = at + 1
    while gutters and end < len(rows):
        if _top(rows[end]) - max(s.y1 for s in rows[end - 1]) > 4 * usual:
            break
        narrowed = _free(gutters, rows[end], usual)
        # A line across a free column is the text after the table, not a row of it.
        if len(narrowed) < len(gutters) and (len(rows[end]) == 1 or not narrowed):
            break
        gutters = narrowed
        end += 1
    # The first row may have had fewer cells than those below.
    return end, _gaps([segment for row in rows[at:end] for segment in row], usual) if gutters else []


def _top(row: Row) -> float:
    return min(segment.y0 for segment in row)


def _gaps(row: Row, usual: float) -> list[Span]:
    """Free spans between segments."""
    spans = sorted((segment.x0, segment.x1) for segment in row)
    reach = itertools.accumulate((span[1] for span in spans), max)
    return [
        (end, after[0]) for end, after in zip(reach, spans[1:], strict=False) if after[0] - end > 0.6 * usual
    ]


def _free(gutters: Sequence[Span], row: Row, usual: float) -> list[Span]:
    """What the row leaves free of the gutters."""
    free = list(gutters)
    for segment in row:
        cut: list[Span] = []
        for left, right in free:
            if segment.x1 <= left or segment.x0 >= right:
                cut.append((left, right))
                continue
            if segment.x0 > left:
                cut.append((left, segment.x0))
            if segment.x1 < right:
                cut.append((segment.x1, right))
        free = [span for span in cut if span[1] - span[0] > 0.6 * usual]
    return free


def _columns(band: Sequence[Row], gutters: Sequence[Span]) -> tuple[Span, ...]:
    """The spans between the gutters that hold anything, in the direction of the script."""
    left = min(segment.x0 for row in band for segment in row)
    right = max(segment.x1 for row in band for segment in row)
    edges = [left, *(edge for gutter in sorted(gutters) for edge in gutter), right]
    spans = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]
    held = [
        span
        for span in spans
        if any(segment.x0 < span[1] and span[0] < segment.x1 for row in band for segment in row)
    ]
    texts = [segment.text for row in band for segment in row]
    right_to_left = 2 * sum(bool(_RTL.search(text)) for text in texts) > len(texts)
    return tuple(reversed(held)) if right_to_left else tuple(held)


def _is_prose(band: Sequence[Row], columns: tuple[Span, ...]) -> bool:
    """Columns of running text: lines that mostly reach from edge to edge and are made of words."""
    if len(columns) < 2 or len(columns) > 4 or len(band) < 3:
        return False
    lines: list[list[Row]] = [[] for _ in columns]
    for row in band:
        for at, line in _line_parts(row, columns).items():
            lines[at].append(line)
    return (
        sum(_is_running(held, column) for held, column in zip(lines, columns, strict=True)) > len(columns) / 2
    )


def _is_running(lines: Sequence[Row], column: Span) -> bool:
    width = column[1] - column[0]
    if len(lines) < 3 or width <= 0:
        return False
    filled = statistics.median(sum(segment.x1 - segment.x0 for segment in line) / width for line in lines)
    return filled > 0.6 and statistics.median(sum(_words(s.text) for s in line) for line in lines) >= 3


def _line_parts(row: Row, columns: tuple[Span, ...]) -> dict[int, Row]:
    """The row's segments by column."""
    parts: dict[int, Row] = {}
    for segment in row:
        parts.setdefault(_column(segment, columns), []).append(segment)
    return parts


def _words(text: str) -> float:
    """East Asian writing has no blanks: two and a half characters are a word there."""
    wide = len(_WIDE.findall(text))
    return wide / 2.5 if wide > len(text) / 2 else len(text.split())


def _is_table(band: Sequence[Row], columns: tuple[Span, ...], usual: float) -> bool:
    whole = sum(len({_column(segment, columns) for segment in row}) > 1 for row in band)
    if len(columns) < 2 or len(band) < 2 or whole < max(2, len(band) / 3):
        return False
    # Wide blanks of justified lines may stand above one another, but not wide ones, or not many.
    ordered = sorted(columns)
    widest = max(right[0] - left[1] for left, right in itertools.pairwise(ordered))
    return whole * widest > 3 * usual


def _fits(row: Row, columns: tuple[Span, ...]) -> bool:
    """Whether a row lies inside one of the columns."""
    return any(
        span[0] - 1 <= min(s.x0 for s in row) and max(s.x1 for s in row) <= span[1] + 1 for span in columns
    )


def _near(above: Row, below: Row, usual: float) -> bool:
    return _top(below) - max(segment.y1 for segment in above) < 2 * usual


def _by_columns(
    band: Sequence[Row], columns: tuple[Span, ...], usual: float, titles: Mapping[str, int], depth: int
) -> Iterator[_Part]:
    inside: list[Row] = [[] for _ in columns]
    for row in band:
        for segment in row:
            inside[_column(segment, columns)].append(segment)
    for segments in inside:
        yield from _parts(segments, usual, titles, depth + 1)


def _joined_rows(band: Sequence[Row], columns: tuple[Span, ...], usual: float) -> list[Row]:
    """A row with one cell only, close under the one before and not in the first column, goes on with that cell."""
    rows: list[Row] = []
    for row in band:
        filled = {_column(segment, columns) for segment in row}
        close = rows and _top(row) - max(s.y1 for s in rows[-1]) < 0.3 * usual
        if close and len(columns) > 2 and len(filled) == 1 and 0 not in filled:
            rows[-1] = [*rows[-1], *row]
        else:
            rows.append(list(row))
    return rows


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
        level = titles.get(title_key(text), 0) or _big(row, text, usual)
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
        size < (1.6 if _WIDE.search(text) else 1.25)
        or len(text) > 120
        or not any(char.isalpha() for char in text)
    ):
        return 0
    return 1 if size > 1.9 else 2 if size > 1.5 else 3


def _apart(above: Row, below: Row, usual: float) -> bool:
    return _top(below) - max(segment.y1 for segment in above) > 0.9 * usual


def _is_new(kind: Kind, last: str, line: str, long: float) -> bool:
    """Whether a line begins another block than the one that `last` belongs to."""
    ended = bool(_SENTENCE_END.search(last))
    item = bool(_LIST_ITEM.match(line))
    if kind == "list":
        return ended and not item
    # A paragraph ends where a sentence closes short of the margin.
    return item or (ended and len(last) < 0.75 * long)

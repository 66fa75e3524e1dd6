"""Where text stands on a page: rows, free columns between them, running text or table. Pure."""

import itertools
import re
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from retrieval.parsing.blocks import Box, clean

LINE_JOIN = "\x02"
"""At the end of a segment: its last word goes on in the next line."""
WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
"""Letters as wide as they are high."""
_MARK = re.compile(
    r"(?:\(?\d{1,3}(?:\.\d{1,3})*[.)]?|\(?[a-zA-Z][.)]|\(?[ivxlc]{1,6}[.)]|§+ ?\d+|[•◦▪‣·–*●○■□➢✓→-])$"
)
Span = tuple[float, float]
_RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufefc]")


class Segment(NamedTuple):
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


def segment_text(text: str) -> str:
    """Text of a segment on one line, without control characters; a mark that it is parted stays at its end."""
    if text.isprintable() and "  " not in text:
        return text
    joined = text.endswith(LINE_JOIN)
    text = " ".join(clean(text.replace(LINE_JOIN, "-" if not joined else "")).split())
    return text + LINE_JOIN if joined and text else text


def columns_in(row: Row, columns: tuple[Span, ...]) -> list[int]:
    """For each segment the number of the column that its middle is in or next to."""
    middles, backward = _parting(columns)
    found = [bisect_left(middles, (segment.x0 + segment.x1) / 2) for segment in row]
    return [len(middles) - at for at in found] if backward else found


@lru_cache(maxsize=64)
def _parting(columns: tuple[Span, ...]) -> tuple[list[float], bool]:
    """The middles between neighbours from left to right, and whether the columns run the other way."""
    backward = len(columns) > 1 and columns[0][0] > columns[1][0]
    ordered = columns[::-1] if backward else columns
    return [(left[1] + right[0]) / 2 for left, right in itertools.pairwise(ordered)], backward


def rows_of(segments: Row) -> list[Row]:
    """Segments at one height, from top to bottom, each row in the direction of its script."""
    rows: list[Row] = []
    low = high = 0.0
    for segment in sorted(segments, key=lambda s: (s.y0 + s.y1) / 2):
        middle = (segment.y0 + segment.y1) / 2
        if rows and low <= middle <= high and segment.height < 3.2 * (high - low) + 1e-9:
            rows[-1].append(segment)
        else:
            rows.append([segment])
            quarter = segment.height / 4
            low, high = segment.y0 + quarter, segment.y1 - quarter
    for row in rows:
        if len(row) > 1:
            backward = _runs_backward([segment.text for segment in row])
            row.sort(key=lambda s: -s.x1 if backward else s.x0)
    return rows


def band_at(rows: Sequence[Row], at: int, usual: float) -> tuple[int, list[Span]]:
    """How far down the free columns inside row `at` go on: the row after the last, and those columns."""
    gutters = _gaps(rows[at], usual)
    end = at + 1
    while gutters and end < len(rows):
        gap = top(rows[end]) - bottom(rows[end - 1])
        # Far below, or apart and parted more finely: another table, or the first one under a letter's head.
        if gap > 4 * usual or (
            gap > 1.5 * usual and end > at + 1 and len(_gaps(rows[end], usual)) > len(gutters)
        ):
            break
        narrowed = _free(gutters, rows[end], usual)
        # A line across a free column is the text after the table, not a row of it.
        if len(narrowed) < len(gutters) and (len(rows[end]) == 1 or not narrowed):
            break
        gutters = narrowed
        end += 1
    # The first row may have had fewer cells than those below.
    return end, _gaps([segment for row in rows[at:end] for segment in row], usual) if gutters else []


def top(row: Row) -> float:
    return row[0].y0 if len(row) == 1 else min(segment.y0 for segment in row)


def bottom(row: Row) -> float:
    return row[0].y1 if len(row) == 1 else max(segment.y1 for segment in row)


def _gaps(row: Row, usual: float) -> list[Span]:
    """Free spans between segments."""
    if len(row) < 2:
        return []
    spans = sorted((segment.x0, segment.x1) for segment in row)
    reach = itertools.accumulate((span[1] for span in spans), max)
    return [
        (end, after[0]) for end, after in zip(reach, spans[1:], strict=False) if after[0] - end > 0.6 * usual
    ]


def _free(gutters: Sequence[Span], row: Row, usual: float) -> list[Span]:
    """What the row leaves free of the gutters."""
    free = list(gutters)
    for segment in row:
        x0, x1 = segment.x0, segment.x1
        for left, right in free:
            if x0 < right and x1 > left:
                break
        else:
            continue
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


def columns_of(band: Sequence[Row], gutters: Sequence[Span]) -> tuple[Span, ...]:
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
    backward = _runs_backward([segment.text for row in band for segment in row])
    return tuple(reversed(held)) if backward else tuple(held)


def _runs_backward(texts: Sequence[str]) -> bool:
    """Whether most of them are Arabic or Hebrew."""
    if "".join(texts).isascii():
        return False
    return 2 * sum(bool(_RTL.search(text)) for text in texts) > len(texts)


def is_prose(band: Sequence[Row], columns: tuple[Span, ...]) -> bool:
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
    for segment, at in zip(row, columns_in(row, columns), strict=True):
        parts.setdefault(at, []).append(segment)
    return parts


def _words(text: str) -> float:
    """East Asian writing has no blanks: two and a half characters are a word there."""
    wide = 0 if text.isascii() else len(WIDE.findall(text))
    return wide / 2.5 if wide > len(text) / 2 else len(text.split())


def is_numbered(band: Sequence[Row], columns: tuple[Span, ...]) -> bool:
    """Clauses, not rows: a number or a mark of its own before each text, and nothing else."""
    if len(columns) != 2:
        return False
    parts = [_line_parts(row, columns) for row in band]
    marks = [" ".join(segment.text for segment in row[0]) for row in parts if len(row) == 2]
    words = sum(any(map(str.isalpha, segment.text)) for row in parts for segment in row.get(1, ()))
    return all(map(_MARK.match, marks)) and 2 * words > len(marks)


def is_table(band: Sequence[Row], columns: tuple[Span, ...], usual: float) -> bool:
    whole = sum(len(row) > 1 and len(set(columns_in(row, columns))) > 1 for row in band)
    if len(columns) < 2 or len(band) < 2 or whole < max(2, len(band) / 3):
        return False
    # Wide blanks of justified lines may stand above one another, but not wide ones, or not many.
    ordered = sorted(columns)
    widest = max(right[0] - left[1] for left, right in itertools.pairwise(ordered))
    return whole * widest > 3 * usual


def fits(row: Row, columns: tuple[Span, ...]) -> bool:
    """Whether a row lies inside one of the columns."""
    return any(
        span[0] - 1 <= min(s.x0 for s in row) and max(s.x1 for s in row) <= span[1] + 1 for span in columns
    )


def near(above: Row, below: Row, usual: float) -> bool:
    return top(below) - bottom(above) < 2 * usual

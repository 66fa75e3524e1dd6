"""Text of a PDF page as segments with their places, by PDFium."""

import ctypes
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy
import numpy.typing
import pypdfium2 as pdfium
from pypdfium2 import raw

from retrieval.parsing.bands import LINE_JOIN, Segment, segment_text
from retrieval.parsing.blocks import Box

_LATIN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "ſ": "s", "\u00ad": ""}
)
_LIGATURE = re.compile(f"[{''.join(map(chr, _LIGATURES))}]")
_INVISIBLE = 3
_GAP = 0.6
"""Of the height of the line: more is no blank between words."""
Point = tuple[float, float]
Floats = numpy.typing.NDArray[numpy.float64]
Ints = numpy.typing.NDArray[numpy.intp]
Bools = numpy.typing.NDArray[numpy.bool_]
Codes = numpy.typing.NDArray[numpy.uint32]
_CODES = f"utf-32-{sys.byteorder[0]}e"
_SPACE = numpy.array([chr(code).isspace() for code in range(0x3002)])
"""By code; no blank stands beyond these."""
_NEWLINE = ord("\n")
_JOIN = ord(LINE_JOIN)


def _quick(function: object, *arguments: type, result: type = ctypes.c_int) -> Callable[..., int]:
    """The same function by plain numbers: its own wrapper makes an object of every pointer, and lets other threads run
    for what takes less time than that.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
    return ctypes.PYFUNCTYPE(result, *arguments)(address)


_PLACE = _quick(raw.FPDFText_GetLooseCharBox, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_OBJECT = _quick(raw.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_int, result=ctypes.c_void_p)
_MODE = _quick(raw.FPDFTextObj_GetTextRenderMode, ctypes.c_void_p)
_UNMAPPED = _quick(raw.FPDFText_HasUnicodeMapError, ctypes.c_void_p, ctypes.c_int)


@dataclass(frozen=True, slots=True)
class Typed:
    """What people typed onto a page."""

    text: str
    rect: tuple[float, float, float, float] | None = None
    """Its place in the page's own coordinates: left, top, right, bottom; None for what has none among the words."""


@dataclass(frozen=True, slots=True)
class PageText:
    segments: tuple[Segment, ...]
    asides: tuple[tuple[Segment, ...], ...]
    """What runs another way than the page: stamps along a margin, marks across it; each in its own direction."""
    hidden: bool
    """Whether some of it is drawn invisibly."""
    unmapped: float
    """Share of words with a glyph that has no letter."""

    @property
    def characters(self) -> int:
        return sum(len(segment.text) for segment in self.segments)


def page_text(page: pdfium.PdfPage, typed: Sequence[Typed] = ()) -> PageText:
    """Everything written on a page, and what was typed onto it where it stands. Errors: PdfiumError."""
    textpage = page.get_textpage()
    try:
        return _Words(page, textpage.raw).read(typed)
    finally:
        textpage.close()


class _Words:
    """Places are asked for the first and the last character of a word only, and worked on as arrays: a crowded page
    has a thousand words.
    """

    def __init__(self, page: pdfium.PdfPage, textpage: raw.FPDF_TEXTPAGE) -> None:
        self._page = page
        self._textpage = ctypes.cast(textpage, ctypes.c_void_p).value
        self._size: Point = page.get_size()
        self._text = _characters(textpage) or " "
        codes = numpy.frombuffer(self._text.encode(_CODES, "surrogatepass"), numpy.uint32)
        self._starts, self._ends, self._firsts = _word_spans(codes)
        # The mark of a parted word has no place of its own.
        marked = (codes[self._ends - 1] == _JOIN) & (self._ends - self._starts > 1)
        self._lasts = self._ends - 1 - marked
        self._plain = _LIGATURE.search(self._text) is None
        self._begins: list[int] = []
        self._letters: list[int] = []
        """The first character of each segment, and how many it has."""

    def read(self, typed: Sequence[Typed]) -> PageText:
        boxes = self._placed(self._boxes())
        shown = numpy.concatenate(
            (
                numpy.minimum(boxes[:, 0, :2], boxes[:, 1, :2]),
                numpy.maximum(boxes[:, 0, 2:], boxes[:, 1, 2:]),
            ),
            axis=1,
        )
        steps = (boxes[:, 1, :2] + boxes[:, 1, 2:] - boxes[:, 0, :2] - boxes[:, 0, 2:]) / 2
        # Each by its letters, not its length: two that PDFium takes for one word lie far apart.
        lengths = numpy.maximum(numpy.hypot(steps[:, 0], steps[:, 1]), 1e-9)
        direction = self._direction(steps * ((self._lasts - self._starts) / lengths)[:, None])
        astray = self._astray(steps, direction)
        segments = self._segments(shown, numpy.flatnonzero(astray == 0), direction)
        asides = [
            self._segments(shown, numpy.flatnonzero(astray == other), way)
            for other, way in _ways(direction)
            if (astray == other).any()
        ]
        return PageText(
            (*segments, *self._typed(typed, segments, direction)),
            tuple(map(tuple, asides)),
            self._hides(),
            self._share_unmapped(),
        )

    def _typed(self, typed: Sequence[Typed], around: Sequence[Segment], direction: int) -> Iterator[Segment]:
        """Line by line, as high as the words around; a single one on the line of its label."""
        usual = statistics.median(segment.height for segment in around) if around else 12.0
        middles = [segment.y0 + segment.height / 2 for segment in around]
        for item in typed:
            lines = [line for line in item.text.splitlines() if line.strip()]
            if item.rect is None or not lines:
                continue
            shown = self._placed(numpy.array([[item.rect, item.rect]]))[:, 0]
            x0, top, x1, bottom = _turned(shown, direction, self._size)[0].tolist()
            share = min((bottom - top) / len(lines), 1.5 * usual)
            middle = (top + bottom) / 2 if len(lines) == 1 else top + share / 2
            if len(lines) == 1:
                beside = (at for at in middles if top <= at <= bottom)
                middle = min(beside, key=lambda at: abs(at - middle), default=middle)
            for number, line in enumerate(lines):
                at = middle + number * share
                # Not wider than its words: an empty rest of a field parts no columns.
                right = min(x1, x0 + 0.6 * usual * len(line))
                box = self._shares(shown)[0]
                yield Segment(segment_text(line), x0, at - usual / 2, right, at + usual / 2, box)

    def _boxes(self) -> Floats:
        """Of the first and last character of each word: left, top, right, bottom in the page's own coordinates."""
        rects = numpy.zeros((len(self._starts), 2, 4), numpy.float32)
        place, page, address = _PLACE, self._textpage, rects.ctypes.data
        for start, last in zip(self._starts.tolist(), self._lasts.tolist(), strict=True):
            place(page, start, address)
            place(page, last, address + 16)
            address += 32
        return rects.astype(numpy.float64)

    def _placed(self, boxes: Floats) -> Floats:
        """As the page is shown: cropped, turned, y downward; left, top, right, bottom."""
        left, bottom, right, top = self._page.get_bbox()
        turned = self._page.get_rotation() % 360
        xs, ys = boxes[:, :, 0::2], boxes[:, :, 1::2]
        if turned == 90:
            xs, ys = ys - bottom, xs - left
        elif turned == 180:
            xs, ys = right - xs, ys - bottom
        elif turned == 270:
            xs, ys = top - ys, right - xs
        else:
            xs, ys = xs - left, top - ys
        (x0, x1), (y0, y1) = (xs[:, :, 0], xs[:, :, 1]), (ys[:, :, 0], ys[:, :, 1])
        low, high = (
            (numpy.minimum(x0, x1), numpy.minimum(y0, y1)),
            (numpy.maximum(x0, x1), numpy.maximum(y0, y1)),
        )
        return numpy.stack((*low, *high), axis=2)

    def _direction(self, steps: Floats) -> int:
        """Which way text runs on the page as shown: 0 across, 90 down, 180 upside down, 270 up."""
        down = float(steps[:, 1].sum())
        if abs(down) > float(numpy.abs(steps[:, 0]).sum()):
            return 90 if down > 0 else 270
        if float(steps[:, 0].sum()) < 0:
            # Arabic and Hebrew run to the left when all is well; other letters do not, but may be part of such a word.
            spans = zip(self._starts.tolist(), self._lasts.tolist(), strict=True)
            latin = [all(_LATIN.match(self._text[at]) for at in span) for span in spans]
            if float(steps[latin, 0].sum()) < 0:
                return 180
        return 0

    def _astray(self, steps: Floats, direction: int) -> Ints:
        """For each word 0 if it runs as the page does, else 1 or -1 by the side that it turns to."""
        along, off = (steps[:, 0], steps[:, 1]) if direction in {0, 180} else (steps[:, 1], steps[:, 0])
        # Two characters may be a letter and its exponent; single ones run nowhere.
        turned = (numpy.abs(off) > 0.6 * numpy.abs(along)) & (self._lasts - self._starts > 1)
        astray = numpy.where(turned, numpy.sign(off), 0).astype(numpy.intp)
        if turned.any():
            # A short word goes with its neighbours, if both run the same way.
            short = self._lasts - self._starts < 2
            sure = numpy.flatnonzero(~short)
            where = numpy.searchsorted(sure, numpy.flatnonzero(short))
            before = astray[sure[numpy.maximum(where - 1, 0)]]
            after = astray[sure[numpy.minimum(where, len(sure) - 1)]]
            astray[short] = numpy.where(before == after, before, 0)
        return astray

    def _segments(self, shown: Floats, which: Ints, direction: int) -> list[Segment]:
        """Of the words `which`, in the frame in which they run from left to right."""
        if not len(which):
            return []
        places = shown[which]
        turned = _turned(places, direction, self._size)
        firsts = self._firsts[which] | numpy.concatenate(([True], which[1:] - which[:-1] > 1))
        begins = numpy.flatnonzero(_breaks(turned, firsts))
        shares = self._shares(_joined(places, begins))
        starts = self._starts[which[begins]].tolist()
        ends = self._ends[which[numpy.append(begins[1:], len(which)) - 1]].tolist()
        segments: list[Segment] = []
        spans = zip(starts, ends, _joined(turned, begins).tolist(), shares, strict=True)
        for start, end, (x0, y0, x1, y1), share in spans:
            text = self._text[start:end]
            if not self._plain and not text.isascii():
                text = text.translate(_LIGATURES)
            if "  " in text or not text.isprintable():
                text = segment_text(text)
            if text:
                segments.append(Segment(text, x0, y0, x1, y1, share))
                self._begins.append(start)
                self._letters.append(len(text))
        return segments

    def _shares(self, shown: Floats) -> list[Box]:
        """As fractions of the page."""
        width, height = self._size
        whole = numpy.array([width or 1.0, height or 1.0, width or 1.0, height or 1.0])
        return list(map(tuple, numpy.clip(shown / whole, 0.0, 1.0).round(4).tolist()))

    def _hides(self) -> bool:
        """Whether any segment is drawn invisibly; neighbours mostly belong to one object."""
        before = 0
        for start in self._begins:
            item = _OBJECT(self._textpage, start)
            if item != before:
                before = item
                if item and _MODE(item) == _INVISIBLE:
                    return True
        return False

    def _share_unmapped(self) -> float:
        unmapped = sum(
            letters
            for start, letters in zip(self._begins, self._letters, strict=True)
            if _UNMAPPED(self._textpage, start) == 1
        )
        return unmapped / (sum(self._letters) or 1)


def _word_spans(codes: Codes) -> tuple[Ints, Ints, Bools]:
    """Where each word begins and ends, and whether it is the first of its line.

    A parted word ends its line, though PDFium goes on in the same.
    """
    word = ~_SPACE[numpy.minimum(codes, len(_SPACE) - 1)]
    after_join = numpy.concatenate(([False], codes[:-1] == _JOIN))
    before = numpy.concatenate(([False], word[:-1]))
    starts = numpy.flatnonzero(word & (~before | after_join))
    ends = numpy.flatnonzero(word & ~numpy.concatenate((word[1:] & ~after_join[1:], [False]))) + 1
    lines = numpy.cumsum((codes == _NEWLINE) | after_join)[starts]
    return starts, ends, numpy.concatenate(([True], lines[1:] != lines[:-1]))[: len(starts)]


def _ways(direction: int) -> tuple[tuple[int, int], ...]:
    """Which way words run that turn to the one or the other side of `direction`."""
    return ((1, 90), (-1, 270)) if direction in {0, 180} else ((1, 0), (-1, 180))


def _turned(boxes: Floats, direction: int, size: Point) -> Floats:
    """The page turned so that its text runs from left to right; vertical Japanese comes out so too."""
    x0, y0, x1, y1 = boxes.T
    width, height = size
    if direction == 90:
        return numpy.stack((y0, width - x1, y1, width - x0), axis=1)
    if direction == 270:
        return numpy.stack((height - y1, x0, height - y0, x1), axis=1)
    if direction == 180:
        return numpy.stack((width - x1, height - y1, width - x0, height - y0), axis=1)
    return boxes


def _breaks(boxes: Floats, firsts: Bools) -> Bools:
    """Where a segment begins: at a line's first word, after a gap too wide for a blank, where the line jumps."""
    x0, y0, x1, y1 = boxes.T
    heights = numpy.maximum(y1 - y0, numpy.roll(y1 - y0, 1))
    gaps = numpy.maximum(x0 - numpy.roll(x1, 1), numpy.roll(x0, 1) - x1)
    jumps = (y0 > numpy.roll(y1, 1)) | (y1 < numpy.roll(y0, 1))
    breaks: Bools = firsts | (gaps > _GAP * heights) | jumps
    return breaks


def _joined(boxes: Floats, starts: Ints) -> Floats:
    low, high = numpy.minimum.reduceat(boxes, starts), numpy.maximum.reduceat(boxes, starts)
    return numpy.concatenate((low[:, :2], high[:, 2:]), axis=1)


def _characters(textpage: raw.FPDF_TEXTPAGE) -> str:
    """One character for each index that PDFium counts; line ends as a blank and \\n."""
    count = raw.FPDFText_CountChars(textpage)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    written = raw.FPDFText_GetText(textpage, 0, count, buffer)
    text = bytes(buffer)[: 2 * max(0, written - 1)].decode("utf-16-le", errors="replace")
    if len(text) != count:
        # Characters beyond the first plane, or ones it leaves out, would shift all places after them.
        codes = (raw.FPDFText_GetUnicode(textpage, i) for i in range(count))
        text = "".join(chr(code) if code < 0x110000 else "\ufffd" for code in codes)
    return text.replace("\ufffe", LINE_JOIN).replace("\r\n", " \n").replace("\r", "\n").replace("\x00", " ")

"""Text of a PDF page as segments with their places, by PDFium."""

import ctypes
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import numpy.typing
import pypdfium2 as pdfium
from pypdfium2 import raw

from retrieval.parsing.bands import LINE_JOIN, Segment, segment_text

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
class PageText:
    segments: tuple[Segment, ...]
    hidden: int
    """Characters drawn invisibly."""
    unmapped: float
    """Share of words with a glyph that has no letter."""

    @property
    def characters(self) -> int:
        return sum(len(segment.text) for segment in self.segments)


def page_text(page: pdfium.PdfPage) -> PageText:
    """Everything written on a page. Errors: PdfiumError."""
    textpage = page.get_textpage()
    try:
        return _Words(page, textpage.raw).read()
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

    def read(self) -> PageText:
        if not len(self._starts):
            return PageText((), 0, 0.0)
        boxes = self._placed(self._boxes())
        shown = numpy.concatenate(
            (
                numpy.minimum(boxes[:, 0, :2], boxes[:, 1, :2]),
                numpy.maximum(boxes[:, 0, 2:], boxes[:, 1, 2:]),
            ),
            axis=1,
        )
        turned = _turned(shown, self._direction(boxes), self._size)
        begins = numpy.flatnonzero(_breaks(turned, self._firsts))
        return self._segments(begins, _joined(turned, begins), _joined(shown, begins))

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
        parts = (xs.min(axis=2), ys.min(axis=2), xs.max(axis=2), ys.max(axis=2))
        return numpy.stack(parts, axis=2)

    def _direction(self, boxes: Floats) -> int:
        """Which way text runs on the page as shown: 0 across, 90 down, 180 upside down, 270 up."""
        middles = (boxes[:, :, :2] + boxes[:, :, 2:]) / 2
        steps = middles[:, 1] - middles[:, 0]
        down = float(steps[:, 1].sum())
        if abs(down) > float(numpy.abs(steps[:, 0]).sum()):
            return 90 if down > 0 else 270
        if float(steps[:, 0].sum()) < 0:
            # Arabic and Hebrew run to the left when all is well; other letters do not.
            spans = zip(self._starts.tolist(), self._ends.tolist(), strict=True)
            latin = [bool(_LATIN.search(self._text, *span)) for span in spans]
            if float(steps[latin, 0].sum()) < 0:
                return 180
        return 0

    def _segments(self, begins: Ints, places: Floats, shown: Floats) -> PageText:
        width, height = self._size
        whole = numpy.array([width or 1.0, height or 1.0, width or 1.0, height or 1.0])
        shares = numpy.clip(shown / whole, 0.0, 1.0).round(4).tolist()
        firsts = self._starts[begins].tolist()
        lasts = self._ends[numpy.append(begins[1:] - 1, len(self._ends) - 1)].tolist()
        plain = _LIGATURE.search(self._text) is None
        segments: list[Segment] = []
        hidden = unmapped = letters = 0
        for first, last, place, share in zip(firsts, lasts, places.tolist(), shares, strict=True):
            written = self._text[first:last]
            text = segment_text(written if plain else written.translate(_LIGATURES))
            if not text:
                continue
            segments.append(Segment(text, place[0], place[1], place[2], place[3], tuple(share)))
            letters += len(text)
            hidden += len(text) if self._invisible(first) else 0
            unmapped += len(text) if _UNMAPPED(self._textpage, first) == 1 else 0
        return PageText(tuple(segments), hidden, unmapped / letters if letters else 0.0)

    def _invisible(self, index: int) -> bool:
        item = _OBJECT(self._textpage, index)
        return bool(item) and _MODE(item) == _INVISIBLE


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

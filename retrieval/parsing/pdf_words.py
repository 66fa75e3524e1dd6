"""Text of a PDF page as segments with their places, by PDFium."""

import ctypes
import re
from dataclasses import dataclass

import numpy
import numpy.typing
import pypdfium2 as pdfium
from pypdfium2 import raw

from retrieval.parsing.bands import LINE_JOIN, Segment, segment_text

_WORD = re.compile(r"\S+")
# A parted word ends its line, though PDFium goes on in the same.
_LINE = re.compile(r"[^\n\x02]*\x02|[^\n\x02]+")
_LATIN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "ſ": "s", "\u00ad": ""}
)
_INVISIBLE = 3
_GAP = 0.6
"""Of the height of the line: more is no blank between words."""
Point = tuple[float, float]
Floats = numpy.typing.NDArray[numpy.float64]
Ints = numpy.typing.NDArray[numpy.intp]
Bools = numpy.typing.NDArray[numpy.bool_]


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
        self._textpage = textpage
        self._size: Point = page.get_size()
        self._text = _characters(textpage)
        self._spans: list[tuple[int, int]] = []
        self._firsts: list[bool] = []
        """Whether the word is the first of its line."""

    def read(self) -> PageText:
        for line in _LINE.finditer(self._text):
            found = [match.span() for match in _WORD.finditer(self._text, *line.span())]
            self._spans.extend(found)
            self._firsts.extend(i == 0 for i in range(len(found)))
        if not self._spans:
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
        starts = numpy.flatnonzero(_breaks(turned, numpy.array(self._firsts)))
        return self._segments(starts, _joined(turned, starts), _joined(shown, starts))

    def _boxes(self) -> Floats:
        """Of the first and last character of each word: left, top, right, bottom in the page's own coordinates."""
        rects = (raw.FS_RECTF * (2 * len(self._spans)))()
        get, byref, page, text = raw.FPDFText_GetLooseCharBox, ctypes.byref, self._textpage, self._text
        for i, (start, end) in enumerate(self._spans):
            # The mark of a parted word has no place of its own.
            last = end - 2 if text[end - 1] == LINE_JOIN and end - start > 1 else end - 1
            get(page, start, byref(rects[2 * i]))
            get(page, last, byref(rects[2 * i + 1]))
        return numpy.frombuffer(rects, numpy.float32).reshape(-1, 2, 4).astype(numpy.float64)

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
            latin = [bool(_LATIN.search(self._text, *span)) for span in self._spans]
            if float(steps[latin, 0].sum()) < 0:
                return 180
        return 0

    def _segments(self, starts: Ints, places: Floats, shown: Floats) -> PageText:
        width, height = self._size
        whole = numpy.array([width or 1.0, height or 1.0, width or 1.0, height or 1.0])
        shares = numpy.clip(shown / whole, 0.0, 1.0).round(4).tolist()
        ends = [*starts[1:].tolist(), len(self._spans)]
        segments: list[Segment] = []
        hidden = unmapped = 0
        for start, end, place, share in zip(starts.tolist(), ends, places.tolist(), shares, strict=True):
            first = self._spans[start][0]
            text = segment_text(self._text[first : self._spans[end - 1][1]].translate(_LIGATURES))
            if not text:
                continue
            segments.append(Segment(text, place[0], place[1], place[2], place[3], tuple(share)))
            hidden += len(text) if self._invisible(first) else 0
            unmapped += len(text) if raw.FPDFText_HasUnicodeMapError(self._textpage, first) == 1 else 0
        letters = sum(len(segment.text) for segment in segments)
        return PageText(tuple(segments), hidden, unmapped / letters if letters else 0.0)

    def _invisible(self, index: int) -> bool:
        item = raw.FPDFText_GetTextObject(self._textpage, index)
        return bool(item) and raw.FPDFTextObj_GetTextRenderMode(item) == _INVISIBLE


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

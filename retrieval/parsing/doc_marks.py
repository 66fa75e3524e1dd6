"""How an old Word document is formatted, as far as it tells text apart: tables, headings, deleted words (MS-DOC). Pure.

Formatting stands in pages of 512 bytes: where each stretch of text begins, and for each the changes from its style.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_PAGE = 512
_CHARACTERS, _PARAGRAPHS = 0x00FA, 0x0102
"""Where the header of a document says where the tables of such pages are."""
_IN_TABLE, _ROW_END, _DELETED = 0x2416, 0x2417, 0x0800
_SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
_LONG = 0xD608
"""The definition of a table's columns: its length takes two bytes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Of one paragraph."""

    table: bool = False
    row_end: bool = False
    heading: int = 0
    """Level, 0 for what is none."""


class Marks:
    """What is asked by the place of a character in the file. Errors: struct.error, IndexError where it is damaged."""

    def __init__(self, main: bytes, table: bytes) -> None:
        self._paragraphs = sorted(_runs(main, table, _PARAGRAPHS), key=lambda run: run[0])
        self._starts = [start for start, *_ in self._paragraphs]
        changed = sorted(_runs(main, table, _CHARACTERS), key=lambda run: run[0])
        self._deleted = [
            (start, end) for start, end, data in changed if dict(_changes(data)).get(_DELETED) == 1
        ]
        self._deleted_ends = [end for _, end in self._deleted]

    def paragraph(self, place: int) -> Mark:
        at = bisect_right(self._starts, place) - 1
        if at < 0 or place >= self._paragraphs[at][1] or len(data := self._paragraphs[at][2]) < 2:
            return Mark()
        style = struct.unpack_from("<H", data)[0]
        changes = dict(_changes(data[2:]))
        return Mark(changes.get(_IN_TABLE) == 1, changes.get(_ROW_END) == 1, style if 1 <= style <= 9 else 0)

    def kept(self, text: str, place: int, width: int) -> str:
        """`text`, which begins at `place` with `width` bytes a character, without what was deleted."""
        first = bisect_right(self._deleted_ends, place)
        last = bisect_right(self._deleted, (place + len(text) * width - 1, 0))
        for start, end in reversed(self._deleted[first:last]):
            text = text[: max(0, start - place) // width] + text[max(0, end - place) // width :]
        return text


def _runs(main: bytes, table: bytes, header: int) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and formatting of each stretch of text."""
    at, size = struct.unpack_from("<II", main, header)
    pages = (size - 4) // 8
    for (number,) in struct.iter_unpack("<I", table[at + 4 * (pages + 1) : at + 4 * (pages + 1) + 4 * pages]):
        page = main[(number & 0x3FFFFF) * _PAGE :][:_PAGE]
        count = page[_PAGE - 1]
        bounds = struct.unpack_from(f"<{count + 1}I", page)
        step = 13 if header == _PARAGRAPHS else 1
        for i in range(count):
            yield bounds[i], bounds[i + 1], _formatting(page, page[4 * (count + 1) + step * i] * 2, step)


def _formatting(page: bytes, at: int, step: int) -> bytes:
    if not at:
        return b""
    size = page[at]
    if step == 1:
        return page[at + 1 : at + 1 + size]
    # Paragraphs count in pairs of bytes; a zero says that the length comes next.
    return page[at + 2 : at + 2 + 2 * page[at + 1]] if not size else page[at + 1 : at + 2 * size]


def _changes(data: bytes) -> Iterator[tuple[int, int]]:
    """Code and first byte of each change."""
    at = 0
    while at + 3 <= len(data):
        code = struct.unpack_from("<H", data, at)[0]
        yield code, data[at + 2]
        size = _SIZES.get(code >> 13)
        if size is None:
            size = struct.unpack_from("<H", data, at + 2)[0] + 1 if code == _LONG else data[at + 2] + 1
        at += 2 + size

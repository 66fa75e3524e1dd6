"""Word 97 to 2003: the text is stored in pieces, some in one byte a character, some in two (MS-DOC)."""

import re
import struct
from collections.abc import Iterator

import olefile

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, protected
from retrieval.parsing.blocks import PageBuilder, Reading, table_text
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.doc_marks import Marks
from retrieval.parsing.source import Source

_MIME = "application/msword"
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_COMPRESSED = 0x40000000
_FIRST_WITH_PIECES = 0xC1
_PARAGRAPH_END = re.compile("[\r\x07\x0c]")
_ROW, _HEADING = "\uf8e0", 0xF8E0
"""Marks of our own, from the very end of what is for private use: of a row, and with its level added of a heading."""
# A field is its instruction, then what it shows.
_FIELD = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x15]*))?\x15")
_MARKS = str.maketrans({"\x0b": "\n", "\x0c": "\r", "\x0e": "\r", "\x1e": "-", "\x1f": "", "\xa0": " "})
_OBJECTS = re.compile("[\x01-\x06\x08\x13-\x15\x28]?[\x01-\x06\x08]")


def read_doc(source: Source) -> Reading:
    """An old Word document as one page: body, footnotes, headers, comments. Errors: ReadError."""
    try:
        with olefile.OleFileIO(source.path) as ole:
            main = ole.openstream("WordDocument").read()
            flags = struct.unpack_from("<H", main, 0x0A)[0]
            if flags & _ENCRYPTED:
                raise protected(source)
            table = "1Table" if flags & _SECOND_TABLE else "0Table"
            text = _text(main, ole.openstream(table).read() if ole.exists(table) else b"")
            title = ole.get_metadata().title or b""
    except (OSError, struct.error, IndexError, ValueError) as exc:
        raise damaged(source, "an old Word document (.doc)") from exc
    builder = PageBuilder()
    _blocks(text, builder)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” is a Word document without any text.", reason="empty")
    name = title.decode("cp1252", errors="replace").strip("\x00 ") if isinstance(title, bytes) else str(title)
    return Reading("doc", _MIME, (page,), paged=False, metadata={"title": name} if name else {})


def _text(main: bytes, table: bytes) -> str:
    version = struct.unpack_from("<H", main, 2)[0]
    if version < _FIRST_WITH_PIECES:
        start, end = struct.unpack_from("<II", main, 0x18)
        return main[start:end].decode("cp1252", errors="replace")
    at, size = struct.unpack_from("<II", main, 0x01A2)
    clx = table[at : at + size]
    # Formatting comes first, each piece of it with its length; then the table of pieces.
    place = 0
    while clx[place] == 1:
        place += 3 + struct.unpack_from("<H", clx, place + 1)[0]
    size = struct.unpack_from("<I", clx, place + 1)[0]
    pieces = _pieces(main, clx[place + 5 : place + 5 + size])
    try:
        marks = Marks(main, table)
        return "".join(_marked(piece, start, width, marks) for piece, start, width in pieces)
    except (struct.error, IndexError):
        # The words are worth more than their tables and headings.
        return "".join(piece for piece, *_ in pieces)


def _marked(piece: str, start: int, width: int, marks: Marks) -> str:
    """The words of a piece, with marks for what its paragraphs are."""
    parts: list[str] = []
    at = 0
    for end in _PARAGRAPH_END.finditer(piece):
        parts.append(marks.kept(piece[at : end.start()], start + at * width, width))
        mark = marks.paragraph(start + end.start() * width)
        if mark.row_end:
            parts.append(f"{_ROW}\x07")
        elif mark.table and end[0] == "\r":
            parts.append("\n")
        else:
            parts.append(f"{chr(_HEADING + mark.heading) if mark.heading else ''}{end[0]}")
        at = end.end()
    return "".join(parts) + marks.kept(piece[at:], start + at * width, width)


def _pieces(main: bytes, plc: bytes) -> list[tuple[str, int, int]]:
    """The words of each piece, where they begin, and the bytes that each character takes."""
    pieces: list[tuple[str, int, int]] = []
    count = (len(plc) - 4) // 12
    bounds = struct.unpack_from(f"<{count + 1}I", plc)
    for i in range(count):
        length = bounds[i + 1] - bounds[i]
        where = struct.unpack_from("<I", plc, 4 * (count + 1) + 8 * i + 2)[0]
        if where & _COMPRESSED:
            start = (where & ~_COMPRESSED) // 2
            pieces.append((main[start : start + length].decode("cp1252", errors="replace"), start, 1))
        else:
            text = main[where : where + 2 * length].decode("utf-16-le", errors="replace")
            pieces.append((text, where, 2))
    return pieces


def _blocks(text: str, builder: PageBuilder) -> None:
    while (shown := _FIELD.sub(lambda match: match[1] or "", text)) != text:
        text = shown
    rows: list[list[str]] = []
    for paragraph in _OBJECTS.sub("", text).translate(_MARKS).split("\r"):
        # Each cell ends with a mark and each row with one more.
        *cells, rest = paragraph.split("\x07")
        if cells:
            rows.extend(_rows([*cells]))
        if rest.strip():
            builder.add("table", table_text(rows))
            rows = []
            level = ord(rest[-1]) - _HEADING
            if 1 <= level <= 9:
                builder.add("heading", rest[:-1], level=level)
            else:
                builder.add("paragraph", rest)
    builder.add("table", table_text(rows))


def _rows(cells: list[str]) -> Iterator[list[str]]:
    row: list[str] = []
    marked = _ROW in cells
    for cell in cells:
        if cell == _ROW or (not marked and not cell and row):
            yield row
            row = []
        else:
            row.append(cell)
    if row:
        yield row


FORMATS = (Format("doc", _MIME, "", lambda clues: SURE if "WordDocument" in clues.streams else 0, read_doc),)

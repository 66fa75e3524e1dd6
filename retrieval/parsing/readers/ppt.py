"""PowerPoint 97 to 2003: records in records; which slide stands where is told by a directory of its own (MS-PPT)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import olefile

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, protected
from retrieval.parsing.blocks import Page, PageBuilder, Reading
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.source import Source

_MIME = "application/vnd.ms-powerpoint"
_ENCRYPTED_TOKEN = 0xF3D1C4DF
_SLIDE_ATOM, _SLIDE_LIST, _PERSIST = 0x03EF, 0x0FF0, 0x03F3
_HEADER, _CHARS, _BYTES, _OUTLINE = 0x0F9F, 0x0FA0, 0x0FA8, 0x0F9E
_TITLES = {0, 6}
_MASTER_TEXT = {"Click to edit Master title style", "Click to edit Master text styles"}


@dataclass(frozen=True, slots=True)
class _Record:
    kind: int
    instance: int
    container: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class _Listed:
    """A slide or notes page as the document's list has it."""

    persist: int
    identity: int
    texts: list[tuple[int, str]]
    """Kind of text (0 and 6 are titles) and the text of each placeholder."""


def read_ppt(source: Source) -> Reading:
    """An old presentation by slides. Errors: ReadError for damaged and locked files."""
    try:
        with olefile.OleFileIO(source.path) as ole:
            current = ole.openstream("Current User").read()
            if struct.unpack_from("<I", current, 12)[0] == _ENCRYPTED_TOKEN:
                raise protected(source)
            data = ole.openstream("PowerPoint Document").read()
        pages = tuple(_pages(data, struct.unpack_from("<I", current, 16)[0]))
    except (OSError, struct.error, KeyError, IndexError, ValueError, RecursionError) as exc:
        raise damaged(source, "an old PowerPoint presentation (.ppt)") from exc
    if not any(page.text for page in pages):
        raise ReadError(f"“{source.name}” is a presentation without any text.", reason="empty")
    return Reading("ppt", _MIME, pages, paged=True)


def _pages(data: bytes, edit: int) -> Iterator[Page]:
    places, document = _places(data, edit)
    lists = [record for record in _records(_at(data, places[document]).body) if record.kind == _SLIDE_LIST]
    slides = [item for record in lists if record.instance == 0 for item in _listed(record.body)]
    notes = {item.identity: item for record in lists if record.instance == 2 for item in _listed(record.body)}
    for number, slide in enumerate(slides, start=1):
        builder = PageBuilder(number)
        record = _at(data, places[slide.persist])
        for kind, text in _in_order(_slide_texts(record.body, slide)):
            builder.add("heading" if kind in _TITLES else "paragraph", text)
        atom = next((item for item in _records(record.body) if item.kind == _SLIDE_ATOM), None)
        note = notes.get(struct.unpack_from("<I", atom.body, 16)[0]) if atom is not None else None
        if note is not None and note.persist in places:
            texts = [
                text for _, text in _slide_texts(_at(data, places[note.persist]).body, note) if text != "*"
            ]
            builder.add("paragraph", "Notes: " + "\n".join(texts) if texts else "")
        yield builder.page()


def _in_order(texts: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return sorted(texts, key=lambda item: item[0] not in _TITLES)


def _places(data: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Offsets by persistent id, the newest edit's first, and the id of the document."""
    places: dict[int, int] = {}
    document = 0
    seen: set[int] = set()
    while edit and edit not in seen:
        seen.add(edit)
        previous, directory, reference = struct.unpack_from("<III", _at(data, edit).body, 8)
        document = document or reference
        body = _at(data, directory).body
        at = 0
        while at + 4 <= len(body):
            head = struct.unpack_from("<I", body, at)[0]
            first, count = head & 0xFFFFF, head >> 20
            for i, place in enumerate(struct.unpack_from(f"<{count}I", body, at + 4)):
                places.setdefault(first + i, place)
            at += 4 + 4 * count
        edit = previous
    return places, document


def _at(data: bytes, place: int) -> _Record:
    head, kind, size = struct.unpack_from("<HHI", data, place)
    return _Record(kind, head >> 4, head & 15 == 15, data[place + 8 : place + 8 + size])


def _records(data: bytes) -> Iterator[_Record]:
    place = 0
    while place + 8 <= len(data):
        record = _at(data, place)
        yield record
        place += 8 + struct.unpack_from("<I", data, place + 4)[0]


def _listed(body: bytes) -> Iterator[_Listed]:
    item: _Listed | None = None
    kind = 0
    for record in _records(body):
        if record.kind == _PERSIST:
            if item is not None:
                yield item
            persist, _, _, identity = struct.unpack_from("<IIiI", record.body)
            item = _Listed(persist, identity, [])
        elif record.kind == _HEADER:
            kind = struct.unpack_from("<I", record.body)[0]
            if item is not None:
                item.texts.append((kind, ""))
        elif (text := _string(record)) is not None and item is not None and item.texts:
            item.texts[-1] = (kind, text)
    if item is not None:
        yield item


def _slide_texts(body: bytes, listed: _Listed) -> list[tuple[int, str]]:
    """Texts of a slide's shapes; a placeholder's text stands in the list and is named by its number."""
    found: list[tuple[int, str]] = []
    used: set[int] = set()
    kind = 4
    for record in _deep(body):
        if record.kind == _HEADER:
            kind = struct.unpack_from("<I", record.body)[0]
        elif record.kind == _OUTLINE:
            index = struct.unpack_from("<I", record.body)[0]
            used.add(index)
            if index < len(listed.texts):
                found.append(listed.texts[index])
        elif (text := _string(record)) is not None and text not in _MASTER_TEXT:
            found.append((kind, text))
    found.extend(item for i, item in enumerate(listed.texts) if i not in used)
    return [item for item in found if item[1].strip()]


def _deep(body: bytes, depth: int = 0) -> Iterator[_Record]:
    for record in _records(body):
        if record.container and depth < 30:
            yield from _deep(record.body, depth + 1)
        else:
            yield record


def _string(record: _Record) -> str | None:
    if record.kind == _CHARS:
        text = record.body.decode("utf-16-le", errors="replace")
    elif record.kind == _BYTES:
        text = record.body.decode("latin-1")
    else:
        return None
    return text.replace("\r", "\n").replace("\x0b", "\n")


FORMATS = (
    Format(
        "ppt",
        _MIME,
        "",
        lambda clues: SURE if "PowerPoint Document" in clues.streams else 0,
        read_ppt,
    ),
)

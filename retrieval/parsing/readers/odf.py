"""OpenDocument: text, spreadsheets, presentations and drawings are one XML vocabulary, walked in document order."""

import re
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package, protected, refuse_entities, xml_root
from retrieval.parsing.blocks import Page, PageBuilder, Reading, table_text
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.sheets import add_rows
from retrieval.parsing.source import Source

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_MANIFEST = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_BROKEN = (zipfile.BadZipFile, ET.ParseError, KeyError, EOFError, NotImplementedError, ValueError)
_MIMES = {
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "odg": "application/vnd.oasis.opendocument.graphics",
}
_FLAT = re.compile(r"<office:document\b[^>]*?\boffice:mimetype=[\"']([\w./+-]+)[\"']")
_PARTS = {"odt": "text", "ods": "spreadsheet", "odp": "presentation", "odg": "drawing"}
_LABELS = {"odt": "a text", "ods": "a spreadsheet", "odp": "a presentation", "odg": "a drawing"}
_SKIPPED = {f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls", f"{_OFFICE}forms", f"{_TEXT}variable-decls"}
_SHAPES = frozenset(
    _DRAW + name
    for name in (
        *("frame", "custom-shape", "g", "rect", "ellipse", "circle", "line", "connector"),
        *("measure", "caption", "path", "polygon", "polyline", "regular-polygon"),
    )
)
"""What stands in a paragraph but is no part of its words."""
_VALUES = ("value", "date-value", "string-value", "time-value", "boolean-value")
_CENTIMETRES = {"in": 2.54, "mm": 0.1, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}
_MOST_REPEATS = 10_000
"""Sheets fill themselves to their end with one repeated empty cell or row; more copies of content are no data."""


def read_odf(source: Source, kind: str) -> Reading:
    """Text as one page, a page for each sheet or slide. Errors: ReadError for damaged, locked and hostile files."""
    try:
        with package(source) as archive:
            if _encrypted(archive):
                raise protected(source)
            root = xml_root(archive, "content.xml")
            _embed(archive, root)
            margins = _margins(archive)
            title = _title(archive)
    except _BROKEN as exc:
        raise damaged(source, f"an OpenDocument file ({_LABELS[kind]})") from exc
    return _reading(source, kind, root, margins, title)


def read_flat(source: Source, kind: str) -> Reading:
    """The same as one XML file without an archive around it. Errors: ReadError."""
    data = source.data()
    refuse_entities(data, source)
    try:
        root = ET.fromstring(data)  # noqa: S314 - entities were refused
    except ET.ParseError as exc:
        raise damaged(source, f"an OpenDocument file ({_LABELS[kind]})") from exc
    margins = _once(root, f"{_STYLE}header"), _once(root, f"{_STYLE}footer")
    title = root.findtext(f".//{_OFFICE}meta/{_DC}title") or ""
    return _reading(source, kind, root, margins, " ".join(title.split()))


def _reading(
    source: Source, kind: str, root: ET.Element, margins: tuple[list[str], list[str]], title: str
) -> Reading:
    _promote_titles(root)
    body = root.find(f"{_OFFICE}body/{_OFFICE}{_PARTS[kind]}")
    pages = _pages(body, kind, margins) if body is not None else []
    if not any(page.text for page in pages):
        raise ReadError(f"“{source.name}” is {_LABELS[kind]} without any text.", reason="empty")
    metadata = {"title": title} if title else {}
    return Reading(kind, _MIMES[kind], tuple(pages), paged=kind in {"odp", "odg"}, metadata=metadata)


def _promote_titles(root: ET.Element) -> None:
    """A paragraph in the style of a document's title is its first heading."""
    styles = {"Title"} | {
        node.get(f"{_STYLE}name", "")
        for node in root.iter(f"{_STYLE}style")
        if node.get(f"{_STYLE}parent-style-name") == "Title"
    }
    for node in root.iter(f"{_TEXT}p"):
        if node.get(f"{_TEXT}style-name") in styles:
            node.tag = f"{_TEXT}h"


def _encrypted(archive: zipfile.ZipFile) -> bool:
    """Some programs write no manifest; a file without one is not encrypted."""
    name = "META-INF/manifest.xml"
    if name not in archive.namelist():
        return False
    return xml_root(archive, name).find(f".//{_MANIFEST}encryption-data") is not None


def _embed(archive: zipfile.ZipFile, root: ET.Element) -> None:
    """Put charts and formulas, which are documents of their own inside the file, where they are shown."""
    names = set(archive.namelist())
    for node in list(root.iter(f"{_DRAW}object")):
        path = f"{node.get(f'{_XLINK}href', '').removeprefix('./').rstrip('/')}/content.xml"
        if path not in names:
            continue
        inner = xml_root(archive, path)
        for said in inner.iter("{http://www.w3.org/1998/Math/MathML}annotation"):
            formula = ET.SubElement(node, f"{_TEXT}p")
            formula.text = said.text
        node.extend(inner.findall(f"{_OFFICE}body"))


def _pages(body: ET.Element, kind: str, margins: tuple[list[str], list[str]]) -> list[Page]:
    if kind == "ods":
        return [_sheet(i, table) for i, table in enumerate(body.findall(f"{_TABLE}table"), start=1)]
    if kind in {"odp", "odg"}:
        return [_slide(i, page) for i, page in enumerate(body.findall(f"{_DRAW}page"), start=1)]
    builder = PageBuilder()
    headers, footers = margins
    for text in headers:
        builder.add("paragraph", text)
    _blocks(body, builder)
    for text in footers:
        builder.add("paragraph", text)
    return [builder.page()]


def _sheet(number: int, table: ET.Element) -> Page:
    builder = PageBuilder(number)
    builder.add("heading", table.get(f"{_TABLE}name", ""))
    add_rows(builder, _grid(table))
    for shape in table.findall(f"{_TABLE}shapes"):
        _blocks(shape, builder)
    for row in _rows(table):
        for cell in row.findall(f"{_TABLE}table-cell"):
            for note in cell.findall(f"{_OFFICE}annotation"):
                about = f" on “{value[:80]}”" if (value := " ".join(_cell(cell).split())) else ""
                builder.add("paragraph", f"Comment{about}: {_flat(note)}")
    return builder.page()


def _slide(number: int, slide: ET.Element) -> Page:
    builder = PageBuilder(number)
    frames = [node for node in slide if node.tag != f"{_PRESENTATION}notes"]
    # The file's own order is that of drawing: the title may stand anywhere in it.
    frames.sort(key=lambda node: (node.get(f"{_PRESENTATION}class") != "title", *_place(node)))
    for frame in frames:
        if frame.get(f"{_PRESENTATION}class") == "title":
            builder.add("heading", " ".join(_flat(frame).split()))
        else:
            _visit(frame, builder)
    for notes in slide.findall(f"{_PRESENTATION}notes"):
        inner = PageBuilder()
        _blocks(notes, inner)
        if text := inner.page().text:
            builder.add("paragraph", f"Notes: {text}")
    return builder.page()


def _place(frame: ET.Element) -> tuple[float, float]:
    """From top to bottom, what is less than a line apart from left to right; in centimetres."""
    x, y = ((frame.get(_SVG + name) or "0cm") for name in "xy")
    across, down = (float(length[:-2] or 0) * _CENTIMETRES.get(length[-2:], 1.0) for length in (x, y))
    return down // 0.8, across


def _blocks(node: ET.Element, builder: PageBuilder) -> None:
    for child in node:
        _visit(child, builder)


def _visit(node: ET.Element, builder: PageBuilder) -> None:
    if node.tag in _SKIPPED or node.get(f"{_PRESENTATION}class") == "page-number":
        return
    if node.tag == f"{_TEXT}h":
        level = node.get(f"{_TEXT}outline-level", "1")
        builder.add("heading", _inline(node), level=int(level) if level.isdecimal() else 1)
    elif node.tag == f"{_TEXT}p":
        builder.add("paragraph", _inline(node))
        for shape in _shapes(node):
            _visit(shape, builder)
    elif node.tag in {f"{_SVG}title", f"{_SVG}desc"}:
        # What a picture shows, in the words of whoever put it there.
        builder.add("paragraph", node.text or "")
    elif node.tag == f"{_TEXT}list":
        if next(node.iter(f"{_TEXT}h"), None) is not None:
            for item in node:
                _blocks(item, builder)
        else:
            builder.add("list", "\n".join(_items(node, 0)))
    elif node.tag == f"{_TABLE}table":
        builder.add("table", table_text(_grid(node)))
    else:
        _blocks(node, builder)


def _shapes(node: ET.Element) -> Iterator[ET.Element]:
    """The outermost shapes inside a paragraph."""
    for child in node:
        if child.tag in _SHAPES:
            yield child
        else:
            yield from _shapes(child)


def _items(node: ET.Element, depth: int) -> Iterator[str]:
    for item in node:
        mark = "-"
        for part in item:
            if part.tag == f"{_TEXT}list" and depth < 50:
                yield from _items(part, depth + 1)
            elif text := _with_shapes(part).strip():
                yield f"{'  ' * depth}{mark} {text}"
                mark = " "


def _grid(table: ET.Element) -> list[list[str]]:
    """Rows of cells as they are shown; merged cells are repeated in every place they cover."""
    rows: list[list[str]] = []
    carried: dict[int, tuple[int, str]] = {}
    for row in _rows(table):
        cells = _cells(row, carried)
        while cells and not cells[-1]:
            cells.pop()
        repeat = _count(row, "number-rows-repeated")
        rows.extend([cells] * (min(repeat, _MOST_REPEATS) if cells else 1))
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _rows(table: ET.Element) -> Iterator[ET.Element]:
    """Its own rows, not those of tables inside its cells."""
    for child in table:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif child.tag.startswith((f"{_TABLE}table-row", f"{_TABLE}table-header-rows")):
            yield from _rows(child)


def _cells(row: ET.Element, carried: dict[int, tuple[int, str]]) -> list[str]:
    cells: list[str] = []
    filler = ""
    # A title over the whole sheet is one cell to a reader.
    lone = not carried and sum(bool(_cell(cell)) for cell in row.findall(f"{_TABLE}table-cell")) == 1
    for cell in row:
        repeat = min(_count(cell, "number-columns-repeated"), _MOST_REPEATS)
        if cell.tag == f"{_TABLE}covered-table-cell":
            for _ in range(repeat):
                left, text = carried.pop(len(cells), (0, filler))
                if left > 1:
                    carried[len(cells)] = (left - 1, text)
                cells.append(text)
        elif cell.tag == f"{_TABLE}table-cell":
            text = _cell(cell)
            wide, high = _count(cell, "number-columns-spanned"), _count(cell, "number-rows-spanned")
            filler = text if wide > 1 and not lone else ""
            for at in range(len(cells), len(cells) + max(wide, repeat)) if high > 1 else ():
                carried[at] = (high - 1, text)
            cells.extend([text] * repeat)
    return cells


def _cell(cell: ET.Element) -> str:
    parts = [_flat(part) for part in cell if part.tag != f"{_OFFICE}annotation"]
    text = " ".join(part for part in parts if part.strip())
    return text or next((said for name in _VALUES if (said := cell.get(_OFFICE + name))), "")


def _count(node: ET.Element, name: str) -> int:
    value = node.get(_TABLE + name, "1")
    return max(1, int(value)) if value.isdecimal() else 1


def _flat(node: ET.Element) -> str:
    """All text inside, paragraphs on lines of their own."""
    if node.tag in {f"{_TEXT}p", f"{_TEXT}h"}:
        return _with_shapes(node)
    return "\n".join(text for child in node if (text := _flat(child)))


def _with_shapes(node: ET.Element) -> str:
    """A paragraph where blocks of their own have no place: in a cell, a list, a note."""
    boxes = (_flat(shape) for shape in _shapes(node))
    return "\n".join(text for text in (_inline(node), *boxes) if text.strip())


def _inline(node: ET.Element) -> str:
    """Text of a paragraph: blanks and breaks are elements; notes follow in brackets, boxes are blocks of their own."""
    parts = [node.text or ""]
    for child in node:
        if child.tag == f"{_TEXT}s":
            count = child.get(f"{_TEXT}c", "1")
            parts.append(" " * min(int(count) if count.isdecimal() else 1, 200))
        elif child.tag == f"{_TEXT}tab":
            parts.append(" ")
        elif child.tag == f"{_TEXT}line-break":
            parts.append("\n")
        elif child.tag == f"{_TEXT}note":
            body = child.find(f"{_TEXT}note-body")
            parts.append(f" [{_flat(body)}]" if body is not None else "")
        elif child.tag == f"{_OFFICE}annotation":
            parts.append(f" [Comment: {_flat(child)}]")
        elif child.tag not in _SHAPES:
            parts.append(_inline(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _margins(archive: zipfile.ZipFile) -> tuple[list[str], list[str]]:
    """Texts of headers and of footers, each once."""
    if "styles.xml" not in archive.namelist():
        return [], []
    root = xml_root(archive, "styles.xml")
    return _once(root, f"{_STYLE}header"), _once(root, f"{_STYLE}footer")


def _once(root: ET.Element, tag: str) -> list[str]:
    texts = [_flat(node) for kind in (tag, f"{tag}-left", f"{tag}-first") for node in root.iter(kind)]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _title(archive: zipfile.ZipFile) -> str:
    if "meta.xml" not in archive.namelist():
        return ""
    node = xml_root(archive, "meta.xml").find(f".//{_DC}title")
    return " ".join((node.text or "").split()) if node is not None else ""


def _declared(kind: str) -> Format:
    def claims(clues: Clues) -> int:
        return SURE if clues.mimetype.removesuffix("-template") == _MIMES[kind] else 0

    def flat(clues: Clues) -> int:
        found = _FLAT.search(clues.text)
        return SURE if found is not None and found[1].removesuffix("-template") == _MIMES[kind] else 0

    return Format(
        kind,
        _MIMES[kind],
        "OpenDocument (.odt, .ods, .odp, .odg)" if kind == "odt" else "",
        lambda clues: claims(clues) or flat(clues),
        lambda source: (read_flat if Clues(source).text else read_odf)(source, kind),
    )


FORMATS = tuple(_declared(kind) for kind in _MIMES)

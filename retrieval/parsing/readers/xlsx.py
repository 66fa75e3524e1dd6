"""Excel: a page for each sheet, cells as they are shown where that matters (dates, percents, leading zeros)."""

import datetime
import re
import zipfile
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import python_calamine as calamine

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package, protected, xml_root
from retrieval.parsing.blocks import Page, PageBuilder, Reading
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.sheets import add_rows
from retrieval.parsing.source import Source
from retrieval.parsing.xlsx_notes import Notes, place, sheet_notes, sheet_parts

_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_OLD_MIME = "application/vnd.ms-excel"
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_BROKEN = (zipfile.BadZipFile, ET.ParseError, KeyError, EOFError, NotImplementedError, ValueError)
_ZEROS = re.compile(r"^0{2,30}$")
_LITERAL = re.compile(r'\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|\\(.)|([$€£¥₹])|_.|\*.|\[[^\]]*\]')
"""What a number format writes beside the number: a currency in brackets, words in quotes, a sign by itself."""
_DIGITS = re.compile(r"^[\s(+-]*[0#?][0#?.,]*[\s)]*$")
_UNIT = "\x00"
"""Where the number stands between what its format writes before and after it."""
_MOST_CELLS = 5_000_000
_QUOTED = 80
"""Characters of a cell that are repeated with its comment, which may be cut far from the table."""
_BARE = re.compile(rb"</f>\s*(?:<v\s*/>|<v></v>)?\s*</c>")
"""A formula that nobody has worked out yet: programs that write workbooks leave that to Excel."""
_LINK = re.compile(r'=HYPERLINK\(.*,\s*"([^"]*)"\)', re.IGNORECASE)
_Styles = dict[tuple[int, int], str]


@dataclass(frozen=True, slots=True)
class _Beside:
    """What the library passes over, by row and column."""

    styles: _Styles
    formulas: _Styles
    notes: Notes


def read_xlsx(source: Source) -> Reading:
    """An Excel workbook by sheets. Errors: ReadError for damaged and hostile files."""
    try:
        with package(source) as archive:
            styled, notes = _styled_cells(archive), sheet_notes(archive)
            formulas = {sheet: _bare_formulas(archive, path) for sheet, path in sheet_parts(archive).items()}
    except _BROKEN as exc:
        raise damaged(source, "an Excel workbook") from exc
    return _read(source, "xlsx", _MIME, styled, notes, formulas)


def read_xls(source: Source) -> Reading:
    """A workbook of Excel 97 to 2003 by sheets. Errors: ReadError for damaged and locked files."""
    return _read(source, "xls", _OLD_MIME, {}, {}, {})


def _read(
    source: Source,
    name: str,
    mime: str,
    styled: dict[str, _Styles],
    notes: dict[str, Notes],
    formulas: dict[str, _Styles],
) -> Reading:
    try:
        book = calamine.CalamineWorkbook.from_path(str(source.path))
        of_sheet = {
            sheet: _Beside(styled.get(sheet, {}), formulas.get(sheet, {}), notes.get(sheet, Notes()))
            for sheet in book.sheet_names
        }
        pages = tuple(
            _sheet(i, book.get_sheet_by_name(sheet), beside, source)
            for i, (sheet, beside) in enumerate(of_sheet.items(), start=1)
        )
    except calamine.PasswordError as exc:
        raise protected(source) from exc
    except calamine.CalamineError as exc:
        raise damaged(source, "an Excel workbook") from exc
    # A sheet's own name is no content.
    if not any(len(page.blocks) > 1 for page in pages):
        raise ReadError(f"“{source.name}” is a workbook of empty sheets.", reason="empty")
    broken = ", ".join(f"“{sheet}”" for sheet, found in notes.items() if found.damaged)
    warnings = (f"Comments or text boxes of {broken} are damaged and were left out.",) if broken else ()
    metadata = {"sheets": list(book.sheet_names)}
    return Reading(name, mime, pages, paged=False, metadata=metadata, warnings=warnings)


def _sheet(number: int, sheet: calamine.CalamineSheet, beside: _Beside, source: Source) -> Page:
    builder = PageBuilder(number)
    builder.add("heading", sheet.name)
    if sheet.total_height * sheet.total_width > _MOST_CELLS:
        raise ReadError(
            f"The sheet “{sheet.name}” in “{source.name}” spans {sheet.total_height:,} rows and {sheet.total_width:,} "
            "columns. Delete the empty ones, or split it.",
            reason="too_large",
        )
    raw = sheet.to_python(skip_empty_area=False)
    rows = [
        [_shown(value, beside.styles.get((i, j), "")) for j, value in enumerate(row)]
        for i, row in enumerate(raw)
    ]
    for (i, j), formula in beside.formulas.items():
        rows.extend([] for _ in range(len(rows), i + 1))
        rows[i].extend("" for _ in range(len(rows[i]), j + 1))
        rows[i][j] = rows[i][j] or formula
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        # A title over the whole sheet is one cell to a reader; cells of data are filled everywhere.
        if top >= len(rows) or left >= len(rows[top]) or not (text := rows[top][left]):
            continue
        lone = sum(bool(cell) for cell in rows[top]) == 1 and top == bottom
        for row in rows[top : bottom + 1] if not lone else ():
            for j in range(left, min(right + 1, len(row))):
                row[j] = row[j] or text
    add_rows(builder, rows)
    for text in beside.notes.boxes:
        builder.add("paragraph", text)
    for comment in beside.notes.comments:
        value = " ".join(_at(rows, comment.cell).split())[:_QUOTED]
        about = f"{comment.cell} “{value}”" if value else comment.cell
        by = f" by {comment.by}" if comment.by else ""
        builder.add("paragraph", f"Comment on {about}{by}: {comment.text}")
    return builder.page()


def _at(rows: list[list[str]], cell: str) -> str:
    row, column = place(cell) or (0, 0)
    return rows[row][column] if row < len(rows) and column < len(rows[row]) else ""


def _shown(value: object, style: str) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float | int):
        return _number(float(value), style)
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    return str(value)


def _number(value: float, style: str) -> str:
    if style == "%":
        return f"{value * 100:.10g}%"
    if _UNIT in style:
        before, after = style.split(_UNIT)
        return f"{before}{_number(value, '')}{after}"
    text = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return text.zfill(len(style)) if style else text


def _moment(value: datetime.datetime) -> str:
    if value.time() == datetime.time():
        return value.date().isoformat()
    # Excel counts days in floating point: a microsecond short of a second is that second.
    rounded = value + datetime.timedelta(milliseconds=500)
    text = rounded.replace(microsecond=0)
    if text.year < 1900 or text.date() == datetime.date(1899, 12, 31):
        return text.time().isoformat()
    return text.isoformat(sep=" ")


def _styled_cells(archive: zipfile.ZipFile) -> dict[str, _Styles]:
    """By sheet name, the cells whose number format changes what a number says: percents, and zeros in front."""
    formats = _telling_styles(archive)
    if not formats:
        return {}
    found: dict[str, _Styles] = {}
    for sheet, path in sheet_parts(archive).items():
        with archive.open(path) as part:
            found[sheet] = _cells(part, formats)
    return found


def _cells(part: object, formats: dict[str, str]) -> _Styles:
    cells: _Styles = {}
    for _, node in ET.iterparse(part):  # type: ignore[call-overload] # noqa: S314 - `package` refused entities
        if node.tag == f"{_MAIN}c":
            style = formats.get(node.get("s", ""))
            where = place(node.get("r", "")) if style else None
            if style and where:
                cells[where] = style
        elif node.tag == f"{_MAIN}row":
            node.clear()
    return cells


def _bare_formulas(archive: zipfile.ZipFile, path: str) -> _Styles:
    """Formulas without a value as they are written; of a link the words that it shows."""
    if not _BARE.search(archive.read(path)):
        return {}
    found: _Styles = {}
    with archive.open(path) as part:
        for _, node in ET.iterparse(part):  # noqa: S314 - `package` refused entities
            if node.tag == f"{_MAIN}c" and not node.findtext(f"{_MAIN}v"):
                where, formula = place(node.get("r", "")), node.findtext(f"{_MAIN}f")
                if where and formula:
                    found[where] = _LINK.sub(r"\1", f"={formula}")
            elif node.tag == f"{_MAIN}row":
                node.clear()
    return found


def _telling_styles(archive: zipfile.ZipFile) -> dict[str, str]:
    """By index of a cell's style: "%" or the zeros of its number format."""
    if "xl/styles.xml" not in archive.namelist():
        return {}
    root = xml_root(archive, "xl/styles.xml")
    codes = {"9": "%", "10": "%"}
    for node in root.iter(f"{_MAIN}numFmt"):
        code = node.get("formatCode", "")
        if _ZEROS.match(code):
            codes[node.get("numFmtId", "")] = code
        elif code.split(";")[0].rstrip().endswith("%"):
            codes[node.get("numFmtId", "")] = "%"
        elif unit := _unit(code.split(";")[0]):
            codes[node.get("numFmtId", "")] = unit
    cells = root.find(f"{_MAIN}cellXfs")
    ids = [node.get("numFmtId", "") for node in cells] if cells is not None else []
    return {str(i): codes[key] for i, key in enumerate(ids) if key in codes}


def _unit(code: str) -> str:
    """The currency or measure that a format writes around a number; empty for dates and all that is no plain number."""
    parts: list[str] = []
    digits = ""
    at = 0
    for match in [*_LITERAL.finditer(code), None]:
        plain = code[at : match.start()] if match is not None else code[at:]
        if plain.strip():
            if digits or not _DIGITS.match(plain):
                return ""
            digits = plain
            parts.append(_UNIT)
        at = match.end() if match is not None else at
        if match is not None and (said := "".join(filter(None, match.groups())).strip()):
            parts.append(said)
    if not digits or len(parts) < 2:
        return ""
    # A sign stands close before its number, a word or a sign after it apart.
    before, after = "".join(parts).split(_UNIT)
    return f"{before}{' ' if before[-1:].isalpha() else ''}{_UNIT}{' ' if after else ''}{after}"


def _old(clues: Clues) -> int:
    return SURE if clues.streams & {"Workbook", "Book"} else 0


def _new(clues: Clues) -> int:
    return SURE if clues.members & {"xl/workbook.xml", "xl/workbook.bin"} else 0


FORMATS = (
    Format("xlsx", _MIME, "Excel (.xlsx, .xls)", _new, read_xlsx),
    Format("xls", _OLD_MIME, "", _old, read_xls),
)

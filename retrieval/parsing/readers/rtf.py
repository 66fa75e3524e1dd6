"""Rich Text, by striprtf: text in every code page, rows of tables with their cells."""

import re

from striprtf.striprtf import rtf_to_text

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged
from retrieval.parsing.blocks import PageBuilder, Reading, clean
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.source import Source

_TITLE = re.compile(r"\{\\title\s+([^{}\\]+)\}")
_FOOTNOTE = re.compile(r"\{(?:\\\*)?\\footnote(?:\\ftnalt)?\b")
_MARGIN = re.compile(r"\{\\(?:header|footer)(?:l|r|f)?(?![a-z])")
_COMMENT = re.compile(r"\{\\\*\\annotation(?![a-z])")
_SHAPE = re.compile(r"\{\\shp(?![a-z])|\{\\\*\\shpinst(?![a-z])|\{\\shptxt(?![a-z])")
_PROPERTY = re.compile(r"\{\\sp\s*\{\\sn [^{}]*\}\s*\{\\sv [^{}]*\}\s*\}")
_DELETED = re.compile(r"\{[^{}]*\\deleted(?![a-z0])[^{}]*\}")
_STEPS = re.compile(r"\\(intbl|pard|par)(?![a-z])")
_STYLE = re.compile(r"\{\\s(\d+)[^{}]*?\s(?:heading ([1-9])|title);\}", re.IGNORECASE)
_USED = re.compile(r"\\s(\d+)(?!\d)")
_HEADING = 0xF8E1
"""Marks a heading of the first level, from the end of what is for private use; the levels below come next."""
_NO_MARKS = dict.fromkeys(range(_HEADING, _HEADING + 9))
_BROKEN = (ValueError, LookupError, TypeError, AttributeError)


def read_rtf(source: Source) -> Reading:
    """A Rich Text file as one page. Errors: ReadError when it is damaged or holds no text."""
    code = source.data().decode("latin-1")
    try:
        text = rtf_text(_with_headings(code))
    except _BROKEN as exc:
        raise damaged(source, "a Rich Text file") from exc
    builder = PageBuilder()
    rtf_blocks(text, builder)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no text.", reason="empty")
    title = _TITLE.search(code)
    metadata = {"title": title[1].strip()} if title else {}
    return Reading("rtf", "application/rtf", (page,), paged=False, metadata=metadata)


def _with_headings(code: str) -> str:
    """A mark of our own where a paragraph in the style of a heading begins."""
    levels = {number: int(level or 1) for number, level in _STYLE.findall(code)}

    def marked(match: re.Match[str]) -> str:
        level = levels.get(match[1])
        return f"{match[0]}{{\\u{_HEADING + level - 65_537}?}}" if level else match[0]

    return _USED.sub(marked, code) if levels else code


def rtf_text(code: str) -> str:
    """Plain text of RTF code, ends of cells as `|`."""
    # striprtf leaves out what stands beside the text; as plain groups it stands where it is referred to.
    code = _FOOTNOTE.sub(r"{ ", code)
    code = _COMMENT.sub(r"{ [Comment]", _MARGIN.sub(r"{\\par", code))
    code = _SHAPE.sub(r"{\\par", _PROPERTY.sub("", _DELETED.sub("", code)))
    text: str = rtf_to_text(_joined_cells(code), errors="replace")
    # Characters beyond the first plane are written as halves.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _joined_cells(code: str) -> str:
    """Paragraphs inside a cell as words of it: a row is one line."""
    inside = False

    def joined(match: re.Match[str]) -> str:
        nonlocal inside
        inside = match[1] == "intbl" or (inside and match[1] != "pard")
        return " " if inside and match[1] == "par" else match[0]

    return _STEPS.sub(joined, code)


def rtf_blocks(text: str, builder: PageBuilder) -> None:
    """Paragraphs, and runs of lines that end with a cell as tables."""
    held: list[str] = []
    kind = False
    for line in clean(text).split("\n"):
        row = line.rstrip().endswith("|")
        level = ord(line[0]) - _HEADING + 1 if line else 0
        heading = 1 <= level <= 9
        if held and (row != kind or heading or not line.strip()):
            _add(builder, held, table=kind)
        if heading:
            builder.add("heading", line.translate(_NO_MARKS).strip(), level=level)
        elif line.strip():
            kind = row
            held.append(line.translate(_NO_MARKS))
    _add(builder, held, table=kind)


def _add(builder: PageBuilder, lines: list[str], *, table: bool) -> None:
    if table:
        rows = (
            " | ".join(cell.strip() for cell in line.rstrip().removesuffix("|").split("|")) for line in lines
        )
        builder.add("table", "\n".join(rows))
    else:
        builder.add("paragraph", "\n".join(lines))
    lines.clear()


FORMATS = (
    Format(
        "rtf",
        "application/rtf",
        "Rich Text (.rtf)",
        lambda clues: SURE if clues.head.lstrip().startswith(b"{\\rtf") else 0,
        read_rtf,
    ),
)

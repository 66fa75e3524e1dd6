"""Word documents: mammoth turns them into HTML, so that one path serves both formats."""

import re
import zipfile
from typing import Literal
from xml.etree import ElementTree as ET
from xml.parsers.expat import ExpatError

import lxml.etree
import mammoth

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package
from retrieval.parsing.blocks import Kind, PageBuilder, Reading
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.docx_parts import extras, is_word, readable
from retrieval.parsing.readers.html import html_blocks
from retrieval.parsing.source import Source

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_STYLES = """
comment-reference => sup
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BACK_LINK = re.compile(r'<a href="#(?:footnote|endnote|comment)-ref-[^"]*">[^<]*</a>')

# A damaged package: mammoth has no error of its own for it.
_BROKEN = (
    zipfile.BadZipFile, ET.ParseError, ExpatError, LookupError, ValueError, AttributeError, EOFError,
    lxml.etree.LxmlError,
)  # fmt: skip


def read_docx(source: Source) -> Reading:
    """A Word document as one page (its pages exist only once it is laid out): header, body, notes, comments, footer.

    Errors: ReadError for damaged files, bombs and declared XML entities.
    """
    try:
        with package(source) as archive:
            parts = _parts(archive)
            html = mammoth.convert_to_html(
                readable(archive) or archive.fp,
                style_map=_STYLES,
                convert_image=mammoth.images.img_element(_no_image),
            )
    except _BROKEN as exc:
        raise damaged(source, "a Word document") from exc
    builder = PageBuilder()
    for text in parts.headers:
        builder.add("paragraph", text)
    html_blocks(_BACK_LINK.sub("", html.value), builder)
    for kind, text in parts.extras:
        if kind == "html":
            html_blocks(text, builder)
        else:
            builder.add(kind, text)
    for text in parts.footers:
        builder.add("paragraph", text)
    page = builder.page()
    if not page.text:
        raise ReadError(
            f"“{source.name}” holds no text; if it is made of pictures, they cannot be read.", reason="empty"
        )
    metadata = {"title": parts.title} if parts.title else {}
    return Reading("docx", _MIME, (page,), paged=False, metadata=metadata)


class _Parts:
    """What mammoth leaves out."""

    def __init__(self) -> None:
        self.title = ""
        self.headers: list[str] = []
        self.footers: list[str] = []
        self.extras: list[tuple[Kind | Literal["html"], str]] = []


def _parts(archive: zipfile.ZipFile) -> _Parts:
    parts = _Parts()
    parts.extras.extend(extras(archive))
    for name in sorted(archive.namelist()):
        if not name.endswith((".xml", ".rels")):
            continue
        data = archive.read(name)
        if name == "docProps/core.xml":
            title = ET.fromstring(data).find(  # noqa: S314 - `package` refused entities
                "{http://purl.org/dc/elements/1.1/}title"
            )
            parts.title = " ".join(((title.text if title is not None else "") or "").split())
        elif re.fullmatch(r"word/header\d*\.xml", name):
            _add_once(parts.headers, data)
        elif re.fullmatch(r"word/footer\d*\.xml", name):
            _add_once(parts.footers, data)
    return parts


def _add_once(into: list[str], data: bytes) -> None:
    lines = []
    for paragraph in ET.fromstring(data).iter(f"{_W}p"):  # noqa: S314
        line = "".join(_run_text(node) for node in paragraph.iter())
        if line.strip():
            lines.append(line)
    text = "\n".join(lines)
    if text and text not in into:
        into.append(text)


def _run_text(node: ET.Element) -> str:
    if node.tag == f"{_W}t":
        return node.text or ""
    return " " if node.tag in {f"{_W}tab", f"{_W}br"} else ""


def _no_image(image: object) -> dict[str, str]:
    """Pictures are left out; their description, if any, is kept by mammoth as the alternative text."""
    return {"src": ""}


FORMATS = (
    Format(
        "docx",
        _MIME,
        "Word (.docx, .doc)",
        lambda c: SURE if is_word(c.members) else 0,
        read_docx,
    ),
)

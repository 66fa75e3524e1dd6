"""What a Word document holds that its converter passes over, put into words it reads."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Literal

import lxml.etree

from retrieval.parsing.blocks import Kind
from retrieval.parsing.docx_numbers import Numbers
from retrieval.parsing.drawings import chart_rows, drawn_lines
from retrieval.parsing.formulas import Element, linear

_MAIN = re.compile(r"word/document\d*\.xml")
_STORIES = re.compile(r"word/(?:document\d*|footnotes|endnotes|comments)\.xml")
_CHART = re.compile(r"word/charts/chart\d*\.xml")
_DIAGRAM = re.compile(r"word/diagrams/data\d*\.xml")
_CHUNK = re.compile(r"word/.*\.(?:html?|xhtml|mht)", re.IGNORECASE)
_KEPT = (".xml", ".rels")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TELLING = re.compile(rb"<(?:\w+:)?(?:fldSimple|oMath|oMathPara|bdo|dir|ruby|textpath)\b")
_UNWRAPPED = frozenset(_W + name for name in ("fldSimple", "bdo", "dir", "rubyBase", "rt"))


def is_word(members: frozenset[str]) -> bool:
    """Whether an archive is a Word document; some programs number its main part."""
    return any(_MAIN.fullmatch(name) for name in members)


def readable(archive: zipfile.ZipFile) -> io.BytesIO | None:
    """The package with fields, formulas and the like as plain words; None where there are none.

    Errors: lxml's for damaged parts, zipfile's.
    """
    changed: dict[str, bytes] = {}
    numbers = Numbers(archive)
    for name in archive.namelist():
        if not _STORIES.fullmatch(name):
            continue
        counted = bool(numbers) and _MAIN.fullmatch(name) is not None
        if _TELLING.search(data := archive.read(name)) or counted:
            changed[name] = _plain(data, numbers if counted else None)
    if not changed:
        return None
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        for name in archive.namelist():
            if name.endswith(_KEPT):
                package.writestr(name, changed.get(name) or archive.read(name))
    out.seek(0)
    return out


def _plain(data: bytes, numbers: Numbers | None) -> bytes:
    root = lxml.etree.fromstring(data, lxml.etree.XMLParser(resolve_entities=False, huge_tree=True))
    if numbers is not None:
        for node in root.iter(f"{_W}p"):
            numbers.write(node)
    for node in list(root.iter(f"{_M}oMath")):
        _replace(node, linear(node))
    for node in list(root.iter(f"{_M}oMathPara")):
        _unwrap(node)
    for node in list(root.iter(f"{_W}ruby")):
        _ruby(node)
    for node in list(root.iter(*_UNWRAPPED)):
        _unwrap(node)
    for node in list(root.iter("{urn:schemas-microsoft-com:vml}textpath")):
        _word_art(node)
    return bytes(lxml.etree.tostring(root))


def _replace(node: Element, text: str) -> None:
    run = lxml.etree.Element(f"{_W}r")
    written = lxml.etree.SubElement(run, f"{_W}t")
    written.text = text
    if (parent := node.getparent()) is not None:
        parent.replace(node, run)


def _unwrap(node: Element) -> None:
    """What is in it takes its place."""
    parent = node.getparent()
    if parent is not None:
        at = parent.index(node)
        parent[at : at + 1] = list(node)


def _ruby(node: Element) -> None:
    """A word, and in brackets how it is said."""
    said = "".join(t.text or "" for rt in node.iter(f"{_W}rt") for t in rt.iter(f"{_W}t"))
    base = "".join(t.text or "" for part in node.iter(f"{_W}rubyBase") for t in part.iter(f"{_W}t"))
    outer = node.getparent()
    if outer is not None and outer.tag == f"{_W}r":
        node = outer
    _replace(node, f"{base} ({said})" if said else base)


def _word_art(node: Element) -> None:
    """Words drawn along a line: an own run after the one that holds the drawing."""
    run = next((item for item in node.iterancestors(f"{_W}r")), None)
    if run is not None and (text := (node.get("string") or "").strip()):
        added = lxml.etree.Element(f"{_W}r")
        lxml.etree.SubElement(added, f"{_W}t").text = text
        run.addnext(added)


def extras(archive: zipfile.ZipFile) -> Iterator[tuple[Kind | Literal["html"], str]]:
    """Kind and content of what stands beside the text: charts as tables, diagrams as lists, inserted web pages."""
    for name in sorted(archive.namelist()):
        if _CHART.fullmatch(name):
            titles, table = chart_rows(archive.read(name))
            yield "paragraph", " – ".join(titles)
            yield "table", table
        elif _DIAGRAM.fullmatch(name):
            yield "list", "\n".join(drawn_lines(archive.read(name)))
        elif _CHUNK.fullmatch(name):
            yield "html", archive.read(name).decode("utf-8", "replace")

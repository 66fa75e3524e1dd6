"""What lies over the cells of an Excel sheet: comments, threads of them, and text boxes."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from retrieval.parsing.archive import xml_root

WORKBOOK = "xl/workbook.xml"
_PEOPLE = "xl/persons/person.xml"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_REL = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_THREADED = "tc="
"""Begins the author of a comment that only repeats a thread for older programs."""
_UNSEEN = frozenset({"Fallback", "rPh"})
"""Second forms of what is there already: for older programs, and how a word is pronounced."""


@dataclass(frozen=True, slots=True)
class Comment:
    """`cell` as in A1; `author` may be empty."""

    cell: str
    author: str
    text: str

    @property
    def by(self) -> str:
        """The author as a person's name; empty where none is told."""
        return "" if self.author.startswith(_THREADED) else self.author.strip()


@dataclass(slots=True)
class Notes:
    """Of one sheet, in the order of the sheet."""

    comments: list[Comment] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    damaged: bool = False
    """Some part could not be read; the others were."""


def sheet_parts(archive: zipfile.ZipFile) -> dict[str, str]:
    """The member that holds each sheet, by the sheet's name. Errors: KeyError, ET.ParseError."""
    if WORKBOOK not in archive.namelist():
        return {}
    targets = {node.get("Id", ""): path for node, path in _relations(archive, WORKBOOK)}
    found = {
        node.get("name", ""): targets.get(node.get(_REL) or node.get(_STRICT_REL) or "", "")
        for node in xml_root(archive, WORKBOOK).iter()
        if _local(node) == "sheet"
    }
    return {name: path for name, path in found.items() if path in archive.namelist()}


def sheet_notes(archive: zipfile.ZipFile) -> dict[str, Notes]:
    """By the sheet's name. Errors: KeyError, ET.ParseError where the workbook itself is damaged."""
    return {name: _notes(archive, part) for name, part in sheet_parts(archive).items()}


def _notes(archive: zipfile.ZipFile, part: str) -> Notes:
    notes = Notes()
    threads: list[Comment] = []
    try:
        relations = list(_relations(archive, part))
    except ET.ParseError:
        return Notes(damaged=True)
    for relation, path in relations:
        kind = relation.get("Type", "").rpartition("/")[2]
        try:
            if kind == "comments":
                notes.comments += _comments(xml_root(archive, path))
            elif kind == "threadedComment":
                threads += _thread(xml_root(archive, path), _people(archive))
            elif kind == "drawing":
                notes.boxes += _boxes(xml_root(archive, path))
        except (ET.ParseError, KeyError, ValueError):
            notes.damaged = True
    # Where the thread itself was not found, its copy is better than nothing.
    if threads:
        notes.comments = [c for c in notes.comments if not c.author.startswith(_THREADED)] + threads
    notes.comments.sort(key=lambda comment: place(comment.cell) or (0, 0))
    return notes


def _relations(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[ET.Element, str]]:
    """What a part refers to inside the package, with the member's name."""
    folder, name = posixpath.split(part)
    path = f"{folder}/_rels/{name}.rels"
    if path not in archive.namelist():
        return
    for node in xml_root(archive, path):
        if node.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, node.get("Target", "")))
            yield node, target.lstrip("/")


def _comments(root: ET.Element) -> Iterator[Comment]:
    authors = [node.text or "" for node in root.iter() if _local(node) == "author"]
    for node in root.iter():
        if _local(node) == "comment" and (text := _text(node)):
            number = node.get("authorId", "")
            author = authors[int(number)] if int(number or -1) in range(len(authors)) else ""
            # Excel writes the author's name into the note as its first line.
            yield Comment(node.get("ref", ""), author, text.removeprefix(f"{author}:").strip() or text)


def _thread(root: ET.Element, people: dict[str, str]) -> Iterator[Comment]:
    for node in root.iter():
        if _local(node) == "threadedComment":
            text = "".join(child.text or "" for child in node if _local(child) == "text").strip()
            if text:
                yield Comment(node.get("ref", ""), people.get(node.get("personId", ""), ""), text)


def _people(archive: zipfile.ZipFile) -> dict[str, str]:
    if _PEOPLE not in archive.namelist():
        return {}
    return {node.get("id", ""): node.get("displayName", "") for node in xml_root(archive, _PEOPLE)}


def _boxes(root: ET.Element) -> list[str]:
    """The text of each shape, from top to bottom and left to right by where it is anchored."""
    placed: list[tuple[tuple[int, int, int], str]] = []
    for number, anchor in enumerate(root):
        start = next((node for node in anchor if _local(node) == "from"), None)
        where = {_local(node): int(node.text or 0) for node in start} if start is not None else {}
        corner = where.get("row", -1), where.get("col", -1), number
        texts = (_text(shape) for shape in _seen(anchor) if _local(shape) == "txBody")
        placed.extend((corner, text) for text in texts if text)
    # Shapes of one group stand in the order of the file.
    return [text for _, text in sorted(placed, key=lambda item: item[0])]


def _text(node: ET.Element) -> str:
    """Runs joined; paragraphs and breaks as lines."""
    parts: list[str] = []
    for child in _seen(node):
        if _local(child) == "t":
            parts.append(child.text or "")
        elif _local(child) in {"p", "br"}:
            parts.append("\n")
    return "".join(parts).strip()


def _seen(node: ET.Element) -> Iterator[ET.Element]:
    """`node` and what is in it, without what is there in a better form already."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(child for child in reversed(one) if _local(child) not in _UNSEEN)


def _local(node: ET.Element) -> str:
    """Two dialects of the format differ in nothing but their namespaces."""
    return node.tag.rpartition("}")[2]


def place(cell: str) -> tuple[int, int] | None:
    """Row and column from 0 of a cell such as B7."""
    found = _CELL.fullmatch(cell)
    if found is None:
        return None
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - 64
    return int(found[2]) - 1, column - 1

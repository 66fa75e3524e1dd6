"""E-books: the chapters in the order of the book's spine, each one as a page of HTML."""

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package, xml_root
from retrieval.parsing.blocks import Page, PageBuilder, Reading
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.html import html_blocks
from retrieval.parsing.source import Source

_MIME = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_BROKEN = (zipfile.BadZipFile, ET.ParseError, KeyError, EOFError, NotImplementedError)


def read_epub(source: Source) -> Reading:
    """An e-book, a page for each chapter file. Errors: ReadError for damaged, locked and hostile files."""
    try:
        with package(source) as archive:
            if "META-INF/encryption.xml" in archive.namelist() and _locked(archive):
                raise ReadError(
                    f"“{source.name}” is an e-book with copy protection, so nothing in it can be read.",
                    reason="encrypted",
                )
            book = next(_local(xml_root(archive, _CONTAINER), "rootfile")).get("full-path", "")
            root = xml_root(archive, book)
            pages, missing = _chapters(archive, root, posixpath.dirname(book))
    except (*_BROKEN, StopIteration) as exc:
        raise damaged(source, "an e-book") from exc
    if not any(page.text for page in pages):
        raise ReadError(f"“{source.name}” is an e-book without any text.", reason="empty")
    metadata: dict[str, object] = {}
    for key, name in (("title", "title"), ("author", "creator"), ("language", "language")):
        if text := " ".join("".join(node.itertext()) for node in _local(root, name)):
            metadata[key] = " ".join(text.split())
    warnings = tuple(f"A chapter is missing in the file: {name}." for name in missing)
    return Reading("epub", _MIME, tuple(pages), paged=False, metadata=metadata, warnings=warnings)


def _chapters(archive: zipfile.ZipFile, root: ET.Element, folder: str) -> tuple[list[Page], list[str]]:
    items = {item.get("id", ""): item for item in _local(root, "item")}
    names = archive.namelist()
    pages: list[Page] = []
    missing: list[str] = []
    above: tuple[tuple[int, str], ...] = ()
    for ref in _local(root, "itemref"):
        item = items.get(ref.get("idref", ""))
        if item is None or "html" not in item.get("media-type", "html"):
            continue
        name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        if name not in names:
            missing.append(name)
            continue
        builder = PageBuilder(len(pages) + 1, above=above)
        html_blocks(decode(archive.read(name), declared=True).text, builder)
        page = builder.page()
        above = builder.path
        if page.text:
            pages.append(page)
    return pages, missing


def _local(root: ET.Element, name: str) -> Iterator[ET.Element]:
    """Elements of this name in any namespace: old books use others."""
    return (node for node in root.iter() if str(node.tag).rpartition("}")[2] == name)


def _locked(archive: zipfile.ZipFile) -> bool:
    """Whether more than fonts are encrypted."""
    uris = [
        node.get("URI", "")
        for node in _local(xml_root(archive, "META-INF/encryption.xml"), "CipherReference")
    ]
    return any(uri.endswith(("html", "htm", "xml")) for uri in uris)


def _claims(clues: Clues) -> int:
    return SURE if clues.mimetype == _MIME or _CONTAINER in clues.members else 0


FORMATS = (Format("epub", _MIME, "e-book (.epub)", _claims, read_epub),)

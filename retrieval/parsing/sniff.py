"""What a file is, by its content. The name only breaks ties between formats that are all plain text."""

import re
import zipfile
from dataclasses import dataclass
from pathlib import PurePath

import puremagic

from retrieval.errors import ReadError
from retrieval.parsing.archive import archive_members
from retrieval.parsing.decoding import decode, looks_binary
from retrieval.parsing.source import Source


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    mime: str
    label: str
    """For messages: "a PDF", "an e-mail"."""


PDF = Format("pdf", "application/pdf", "a PDF")
DOCX = Format(
    "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "a Word document"
)
HTML = Format("html", "text/html", "a web page")
MARKDOWN = Format("markdown", "text/markdown", "a Markdown file")
TEXT = Format("text", "text/plain", "a plain text file")

_KNOWN_TO_BE_OTHER = {
    "pptx": "a PowerPoint presentation (.pptx)",
    "xlsx": "an Excel workbook (.xlsx)",
    "odt": "an OpenDocument text (.odt)",
    "ods": "an OpenDocument spreadsheet (.ods)",
    "odp": "an OpenDocument presentation (.odp)",
    "epub": "an e-book (.epub)",
    "zip": "a ZIP archive",
    "ole": "an old Office or Outlook file (.doc, .xls, .ppt or .msg)",
    "rtf": "a Rich Text file (.rtf)",
    "email": "an e-mail message (.eml)",
}
_ODF = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
    b"application/vnd.oasis.opendocument.presentation": "odp",
}
_OOXML = {"word/document.xml": "docx", "xl/workbook.xml": "xlsx", "ppt/presentation.xml": "pptx"}
_HTML_START = re.compile(
    r"\s*(<!--.*?-->\s*|<\?xml[^>]*\?>\s*)*<(!doctype\s+html|html\b|head\b|body\b)", re.IGNORECASE | re.DOTALL
)
_HTML_TAG = re.compile(
    r"</?(p|div|span|table|tr|td|ul|li|h[1-6]|br|title|meta|script|a)\b[^>]*>", re.IGNORECASE
)
_MAIL_HEADER = re.compile(
    r"^(from|to|subject|date|received|mime-version|return-path|message-id|content-type):", re.IGNORECASE
)
_HEADER_LINE = re.compile(r"^[!-9;-~]+:|^[ \t]")
READABLE = "PDF, Word (.docx), HTML, Markdown and plain text"


def sniff(source: Source) -> Format:
    """The format of the content. Errors: ReadError for what is empty, encrypted or no format that can be read."""
    with source.path.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise ReadError(f"“{source.name}” is empty, so there is nothing to read.", reason="empty")
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _zip_format(source)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise _ole(source)
    if head.lstrip().startswith(b"{\\rtf"):
        raise _unsupported(source, _KNOWN_TO_BE_OTHER["rtf"])
    return _text_format(source)


def _zip_format(source: Source) -> Format:
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = archive_members(archive, source)
            kind = next((kind for part, kind in _OOXML.items() if part in names), "")
            if not kind and "mimetype" in names:
                kind = _ODF.get(archive.read("mimetype")[:100].strip(), "")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as exc:
        raise ReadError(
            f"“{source.name}” begins like a Word or ZIP file but is damaged inside ({exc}). "
            "Open it in the program that made it and save it again."
        ) from exc
    if kind == "docx":
        return DOCX
    raise _unsupported(source, _KNOWN_TO_BE_OTHER[kind or "zip"])


def _ole(source: Source) -> ReadError:
    # A password-protected DOCX is an old-style container with this stream name inside.
    if "EncryptedPackage".encode("utf-16-le") in source.data():
        return ReadError(
            f"“{source.name}” is protected with a password, so nothing in it can be read. "
            "Save a copy without the password and upload that.",
            reason="encrypted",
        )
    return _unsupported(source, _KNOWN_TO_BE_OTHER["ole"])


def _text_format(source: Source) -> Format:
    data = source.data()
    if looks_binary(data):
        raise _unsupported(source, _name_of_binary(data))
    start = decode(data).text[:20_000]
    suffix = PurePath(source.name).suffix.lower()
    if _HTML_START.match(start):
        return HTML
    if _is_mail(start):
        raise _unsupported(source, _KNOWN_TO_BE_OTHER["email"])
    if suffix in {".md", ".markdown", ".mkd"}:
        return MARKDOWN
    if suffix in {".html", ".htm", ".xhtml"} and len(_HTML_TAG.findall(start)) >= 3:
        return HTML
    return TEXT


def _is_mail(start: str) -> bool:
    """An e-mail begins with a run of header lines, at least three of them well known."""
    known = 0
    for line in start.split("\n")[:60]:
        if not _HEADER_LINE.match(line):
            break
        known += bool(_MAIL_HEADER.match(line))
    return known >= 3


def _name_of_binary(data: bytes) -> str:
    try:
        guess = puremagic.from_string(data[:65_536])
    except puremagic.PureError:
        return "a binary file of an unknown kind"
    return f"a {guess.lstrip('.').upper()} file"


def _unsupported(source: Source, label: str) -> ReadError:
    return ReadError(
        f"“{source.name}” is {label}. Tessera reads {READABLE}; save or export it as one of these and upload that.",
        reason="unsupported",
    )

"""PDF: PDFium for text in reading order, pypdf when PDFium cannot open the file."""

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pypdf
import pypdf.errors
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading, clean
from retrieval.parsing.pdf_layout import pdf_pages
from retrieval.parsing.source import Source

_MIME = "application/pdf"
_LIGATURES = str.maketrans(
    {
        "ﬀ": "ff",
        "ﬁ": "fi",
        "ﬂ": "fl",
        "ﬃ": "ffi",
        "ﬄ": "ffl",
        "ﬅ": "st",
        "ﬆ": "st",
        "ſ": "s",
        "\u00ad": "",
        "\ufffe": "\x02",
    }
)
# PDFium puts \x02 where a word was hyphenated at a line end and joins its halves.
_HYPHEN = re.compile(r"\x02\n?(?=([a-zà-öø-ÿ])?)")


# What a damaged object tree makes pypdf raise besides its own errors.
_BROKEN_TREE = (ValueError, TypeError, AttributeError, RecursionError, OSError, pypdf.errors.DeprecationError)


@dataclass(frozen=True, slots=True)
class _Raw:
    number: int
    text: str
    pictures: bool
    """Whether the page holds an image, which may be a scan."""


@dataclass(frozen=True, slots=True)
class _Opened:
    pages: tuple[_Raw, ...]
    metadata: dict[str, object]
    outline: dict[int, tuple[tuple[int, str], ...]]
    """Bookmarks by page number: level from 1, title."""
    warnings: tuple[str, ...] = ()


def read_pdf(source: Source) -> Reading:
    """A PDF by pages. Errors: ReadError (encrypted, scanned, garbled, damaged, too_large)."""
    try:
        opened = _with_pdfium(source)
    except pdfium.PdfiumError as exc:
        if getattr(exc, "err_code", None) == pdfium_raw.FPDF_ERR_PASSWORD:
            raise _encrypted(source) from exc
        opened = _with_pypdf(source)
    texts = [raw for raw in opened.pages if raw.text.strip()]
    if not texts:
        raise _nothing_found(source, opened)
    if _garbled("".join(raw.text for raw in texts)):
        raise ReadError(
            f"The text in “{source.name}” has no letter mapping: the page looks right, but what a "
            "machine reads is noise. Export the document again with embedded Unicode fonts, or print it to a new PDF.",
            reason="garbled",
        )
    pages = pdf_pages(((raw.number, raw.text) for raw in opened.pages), opened.outline)
    return Reading("pdf", _MIME, pages, paged=True, metadata=opened.metadata, warnings=_warnings(opened))


def _with_pdfium(source: Source) -> _Opened:
    with pdfium.PdfDocument(source.path, password=source.password) as document:
        if len(document) > source.limits.pages:
            raise _too_many(source, len(document))
        metadata: dict[str, object] = {
            key.lower(): value
            for key, value in document.get_metadata_dict(skip_empty=True).items()
            if value.strip()
        }
        outline = _outline(document)
        if outline:
            metadata["outline"] = [title for _, marks in sorted(outline.items()) for _, title in marks][:500]
        if names := [document.get_attachment(i).get_name() for i in range(document.count_attachments())]:
            metadata["attachments"] = names
        pages, broken = [], []
        for number in range(1, len(document) + 1):
            try:
                pages.append(_pdfium_page(document, number))
            except pdfium.PdfiumError:
                # One bad page does not take the others with it.
                broken.append(number)
                pages.append(_Raw(number, "", pictures=False))
        if len(broken) == len(pages):
            raise pdfium.PdfiumError("no page could be loaded")
        warnings = (f"Damaged and left out: {_ranges(broken)}.",) if broken else ()
        return _Opened(tuple(pages), metadata, outline, warnings)


def _pdfium_page(document: pdfium.PdfDocument, number: int) -> _Raw:
    page = document[number - 1]
    try:
        textpage = page.get_textpage()
        try:
            text = "\n".join([textpage.get_text_bounded(), *_typed_in(page)])
        finally:
            textpage.close()
        # Looked at only where it matters: walking all objects of a page is dear.
        pictures = not text.strip() and any(
            page.get_objects(filter=[pdfium_raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        )
        return _Raw(number, _tidy(text), bool(pictures))
    finally:
        page.close()


def _typed_in(page: pdfium.PdfPage) -> Iterator[str]:
    """What people typed onto the page: free text notes and filled form fields, which are not part of its text."""
    for index in range(pdfium_raw.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium_raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = pdfium_raw.FPDFAnnot_GetSubtype(annotation)
        key = {pdfium_raw.FPDF_ANNOT_FREETEXT: b"Contents", pdfium_raw.FPDF_ANNOT_WIDGET: b"V"}.get(kind)
        if key is not None:
            yield _annotation_text(annotation, key)
        pdfium_raw.FPDFPage_CloseAnnot(annotation)


def _annotation_text(annotation: object, key: bytes) -> str:
    size = pdfium_raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium_raw.FPDFAnnot_GetStringValue(
        annotation, key, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size
    )
    return buffer.raw.decode("utf-16-le", errors="ignore").rstrip("\x00")


def _with_pypdf(source: Source) -> _Opened:
    try:
        reader = pypdf.PdfReader(source.path, strict=False, password=source.password)
        if len(reader.pages) > source.limits.pages:
            raise _too_many(source, len(reader.pages))
        pages = tuple(
            _Raw(i, _tidy(page.extract_text() or ""), pictures=False)
            for i, page in enumerate(reader.pages, start=1)
        )
    except (pypdf.errors.WrongPasswordError, pypdf.errors.FileNotDecryptedError) as exc:
        raise _encrypted(source) from exc
    except (
        pypdf.errors.PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as exc:
        raise _damaged(source) from exc
    warning = "The file is damaged; it was read by a second, simpler reader and may be incomplete."
    return _Opened(pages, {}, {}, (warning,))


def _tidy(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_LIGATURES)
    text = _HYPHEN.sub(lambda m: "" if m[1] else "-", text)
    return clean(text)


def _outline(document: pdfium.PdfDocument) -> dict[int, tuple[tuple[int, str], ...]]:
    found: dict[int, list[tuple[int, str]]] = {}
    for mark in document.get_toc(max_depth=6):
        target = mark.get_dest()
        index = target.get_index() if target is not None else None
        title = " ".join(mark.get_title().split())
        if index is not None and title:
            found.setdefault(index + 1, []).append((mark.level + 1, title))
    return {page: tuple(marks) for page, marks in found.items()}


def _garbled(text: str) -> bool:
    """Whether the text is unmapped: private use, replacement characters, or signs without letters and digits."""
    visible = [c for c in text if not c.isspace()]
    if not visible:
        return False
    unmapped = sum(c == "\ufffd" or "\ue000" <= c <= "\uf8ff" or c >= "\U000f0000" for c in visible)
    wordless = not any(c.isalpha() for c in visible) and sum(c.isdigit() for c in visible) < 0.5 * len(
        visible
    )
    return unmapped > 0.3 * len(visible) or wordless


def _warnings(opened: _Opened) -> tuple[str, ...]:
    scanned = [raw.number for raw in opened.pages if raw.pictures]
    warnings = list(opened.warnings)
    if scanned:
        warnings.append(
            f"Only pictures, no text, on {_ranges(scanned)}: these pages cannot be found by a question."
        )
    if names := opened.metadata.get("attachments"):
        warnings.append(
            f"Attached files were not read: {', '.join(map(str, names))}." if isinstance(names, list) else ""
        )
    return tuple(w for w in warnings if w)


def _ranges(numbers: list[int]) -> str:
    """`page 3`, `pages 3–5, 9`; long lists are cut."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs[:8]) + (" …" if len(runs) > 8 else "")
    return f"page{'s' if len(numbers) > 1 else ''} {shown}"


def _nothing_found(source: Source, opened: _Opened) -> ReadError:
    if any(raw.pictures for raw in opened.pages):
        return ReadError(
            f"“{source.name}” is scanned: its {len(opened.pages)} page(s) are pictures and no text was found, so no "
            "question could find anything in it. Run text recognition (OCR) over it and upload the result.",
            reason="scanned",
        )
    return ReadError(
        f"“{source.name}” holds no text on any of its {len(opened.pages)} page(s).", reason="empty"
    )


def _encrypted(source: Source) -> ReadError:
    return ReadError(
        f"“{source.name}” is encrypted and needs a password, so nothing in it can be read. "
        "Save a copy without the password and upload that.",
        reason="encrypted",
    )


def _damaged(source: Source) -> ReadError:
    return ReadError(
        f"“{source.name}” is damaged: two PDF readers could not open it. Open it in a viewer and save it again, "
        "or export it anew.",
        reason="damaged",
    )


def _too_many(source: Source, pages: int) -> ReadError:
    return ReadError(
        f"“{source.name}” has {pages:,} pages; the limit is {source.limits.pages:,}. Split it and upload the parts.",
        reason="too_large",
    )

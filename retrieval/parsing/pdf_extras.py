"""What a PDF holds beside its pages' text: properties, bookmarks, attachments, and what people typed onto pages."""

import ctypes
from collections.abc import Callable, Iterator

import pypdfium2 as pdfium
from pypdfium2 import raw

from retrieval.parsing.layout import title_key
from retrieval.parsing.pdf_words import Typed

_MOST_TITLES = 500
_MOST_OPTIONS = 1000


def about(document: pdfium.PdfDocument) -> tuple[dict[str, object], dict[int, dict[str, int]]]:
    """Properties, and by page number the level of each bookmark by its `title_key`."""
    metadata: dict[str, object] = {
        key.lower(): value
        for key, value in document.get_metadata_dict(skip_empty=True).items()
        if value.strip()
    }
    titles: list[str] = []
    levels: dict[int, dict[str, int]] = {}
    for mark in document.get_toc(max_depth=6):
        title = " ".join(mark.get_title().split())
        target = mark.get_dest()
        index = target.get_index() if target is not None else None
        if title:
            titles.append(title)
            if index is not None:
                levels.setdefault(index + 1, {})[title_key(title)] = mark.level + 1
    if titles:
        metadata["outline"] = titles[:_MOST_TITLES]
    return metadata, levels


def attached(document: pdfium.PdfDocument) -> Iterator[tuple[str, bytes]]:
    """Name and content of each attached file; no bytes for what is damaged."""
    for index in range(document.count_attachments()):
        attachment = document.get_attachment(index)
        try:
            yield attachment.get_name(), bytes(attachment.get_data())
        except pdfium.PdfiumError:
            yield attachment.get_name(), b""


_REMARKS = frozenset(
    {
        *(raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE, raw.FPDF_ANNOT_SQUIGGLY),
        *(raw.FPDF_ANNOT_STRIKEOUT, raw.FPDF_ANNOT_CARET, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_INK),
        *(raw.FPDF_ANNOT_LINE, raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE, raw.FPDF_ANNOT_POLYGON),
        *(raw.FPDF_ANNOT_POLYLINE, raw.FPDF_ANNOT_FILEATTACHMENT),
    }
)


_CHOICES = (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
_TICKS = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_TICK = "☒"


def typed_in(page: pdfium.PdfPage) -> Iterator[Typed]:
    """What people typed onto the page and is not part of its text: notes, filled form fields, comments.

    Fields have values only where the document's forms were initialised.
    """
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_FREETEXT:
            yield Typed(_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))
        elif kind == raw.FPDF_ANNOT_WIDGET:
            yield Typed(_value(page.formenv, annotation), _rect(annotation))
        elif kind in _REMARKS and (
            text := _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents").strip()
        ):
            author = _string(raw.FPDFAnnot_GetStringValue, annotation, b"T").strip()
            yield Typed(f"Comment by {author}: {text}" if author else f"Comment: {text}")
        raw.FPDFPage_CloseAnnot(annotation)


def _value(form: pdfium.PdfFormEnv | None, annotation: object) -> str:
    """Of a form field, which may stand with a parent of the box on the page."""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form is not None else -1
    if kind == -1:
        return _string(raw.FPDFAnnot_GetStringValue, annotation, b"V")
    if kind in _TICKS:
        return _TICK if raw.FPDFAnnot_IsChecked(form, annotation) else ""
    if kind in _CHOICES:
        chosen = [
            _string(raw.FPDFAnnot_GetOptionLabel, form, annotation, number)
            for number in range(min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MOST_OPTIONS))
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
        ]
        if chosen:
            return ", ".join(chosen)
    if kind == raw.FPDF_FORMFIELD_PUSHBUTTON:
        return ""
    return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)


def _rect(annotation: object) -> tuple[float, float, float, float] | None:
    rect = raw.FS_RECTF()
    if not raw.FPDFAnnot_GetRect(annotation, rect):
        return None
    return rect.left, rect.top, rect.right, rect.bottom


def _string(function: Callable[..., int], *arguments: object) -> str:
    """PDFium says how long a text is before it gives it."""
    size = function(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", errors="ignore").rstrip("\x00")

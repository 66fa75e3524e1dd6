"""What a PDF holds beside its pages' text: properties, bookmarks, attachments, and what people typed onto pages."""

import ctypes
from collections.abc import Iterator, Mapping

import pypdfium2 as pdfium
from pypdfium2 import raw

from retrieval.parsing.layout import title_key

_MOST_TITLES = 500


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
    if names := [document.get_attachment(i).get_name() for i in range(document.count_attachments())]:
        metadata["attachments"] = names
    return metadata, levels


def attachment_note(metadata: Mapping[str, object]) -> Iterator[str]:
    names = metadata.get("attachments")
    if isinstance(names, list):
        yield f"Attached files were not read: {', '.join(map(str, names))}. Upload them by themselves."


_REMARKS = frozenset(
    {
        *(raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE, raw.FPDF_ANNOT_SQUIGGLY),
        *(raw.FPDF_ANNOT_STRIKEOUT, raw.FPDF_ANNOT_CARET, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_INK),
        *(raw.FPDF_ANNOT_LINE, raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE, raw.FPDF_ANNOT_POLYGON),
        *(raw.FPDF_ANNOT_POLYLINE, raw.FPDF_ANNOT_FILEATTACHMENT),
    }
)


def typed_in(page: pdfium.PdfPage) -> Iterator[str]:
    """What people typed onto the page and is not part of its text: notes, filled form fields, comments."""
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        key = {raw.FPDF_ANNOT_FREETEXT: b"Contents", raw.FPDF_ANNOT_WIDGET: b"V"}.get(kind)
        if key is not None:
            yield _annotation_text(annotation, key)
        elif kind in _REMARKS and (text := _annotation_text(annotation, b"Contents").strip()):
            author = _annotation_text(annotation, b"T").strip()
            yield f"Comment by {author}: {text}" if author else f"Comment: {text}"
        raw.FPDFPage_CloseAnnot(annotation)


def _annotation_text(annotation: object, key: bytes) -> str:
    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", errors="ignore").rstrip("\x00")

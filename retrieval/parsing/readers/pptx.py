"""PowerPoint: a page for each slide, with its tables, charts and speaker notes."""

import zipfile
from collections.abc import Iterable
from typing import Any

import lxml.etree
import pptx
import pptx.exc

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package
from retrieval.parsing.blocks import Page, PageBuilder, Reading, page_ranges, table_text
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.source import Source

_MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_BROKEN = (
    zipfile.BadZipFile, pptx.exc.PythonPptxError, lxml.etree.LxmlError, LookupError, ValueError, AttributeError,
    TypeError, EOFError, NotImplementedError,
)  # fmt: skip


def read_pptx(source: Source) -> Reading:
    """A presentation by slides. Errors: ReadError for damaged and hostile files and for one without any text."""
    try:
        with package(source) as archive:
            presentation = pptx.Presentation(archive.fp)
            slides = list(presentation.slides)
            title = presentation.core_properties.title
    except _BROKEN as exc:
        raise damaged(source, "a PowerPoint presentation") from exc
    pages: list[Page] = []
    broken: list[int] = []
    for number, slide in enumerate(slides, start=1):
        try:
            pages.append(_slide(number, slide))
        except _BROKEN:
            # One bad slide does not take the others with it.
            broken.append(number)
            pages.append(Page(number, "", ()))
    if not any(page.text for page in pages):
        raise ReadError(
            f"“{source.name}” is a presentation without any text; if its slides are pictures, print it to PDF and "
            "upload that.",
            reason="empty",
        )
    warnings = (f"Damaged and left out: {page_ranges(broken)}.",) if broken else ()
    metadata = {"title": title} if title else {}
    return Reading("pptx", _MIME, tuple(pages), paged=True, metadata=metadata, warnings=warnings)


def _slide(number: int, slide: Any) -> Page:
    builder = PageBuilder(number)
    title = slide.shapes.title
    if title is not None:
        builder.add("heading", " ".join(title.text_frame.text.split()))
    for shape in _ordered(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            _shape(shape, builder)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        builder.add("paragraph", f"Notes: {_lines(frame)}" if frame.text.strip() else "")
    return builder.page()


def _ordered(shapes: Iterable[Any]) -> list[Any]:
    """From top to bottom, then left to right: the file's own order is that of drawing. Placeholders know no place."""
    placed = [shape for shape in shapes if shape.top is not None]
    return [s for s in shapes if s.top is None] + sorted(placed, key=lambda s: (s.top // 300_000, s.left))


def _shape(shape: Any, builder: PageBuilder) -> None:
    if hasattr(shape, "shapes"):
        for inner in _ordered(shape.shapes):
            _shape(inner, builder)
    elif getattr(shape, "has_table", False):
        builder.add("table", table_text(_grid(shape.table)))
    elif getattr(shape, "has_chart", False):
        _chart(shape.chart, builder)
    elif shape.has_text_frame:
        lines = [p for p in shape.text_frame.paragraphs if "".join(r.text for r in p.runs).strip()]
        builder.add("list" if len(lines) > 1 else "paragraph", _lines(shape.text_frame))
    else:
        # Diagrams and whatever else carries text.
        texts = [node.text for node in shape.element.iter(_TEXT) if node.text]
        builder.add("paragraph", "\n".join(texts))


def _lines(frame: Any) -> str:
    return "\n".join("  " * p.level + p.text.replace("\v", "\n") for p in frame.paragraphs if p.text.strip())


def _grid(table: Any) -> list[list[str]]:
    """Merged cells are repeated in every place they cover."""
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    for i, row in enumerate(table.rows):
        for j, cell in enumerate(row.cells):
            if not cell.is_merge_origin:
                continue
            for down in range(i, min(i + cell.span_height, len(rows))):
                for across in range(j, min(j + cell.span_width, len(rows[down]))):
                    rows[down][across] = cell.text
    return rows


def _chart(chart: Any, builder: PageBuilder) -> None:
    if chart.has_title and chart.chart_title.has_text_frame:
        builder.add("paragraph", chart.chart_title.text_frame.text)
    for plot in chart.plots:
        series = list(plot.series)
        rows = [["", *(str(item.name or "") for item in series)]]
        for i, category in enumerate(plot.categories):
            values = [item.values[i] if i < len(item.values) else None for item in series]
            rows.append([str(category), *("" if value is None else f"{value:g}" for value in values)])
        builder.add("table", table_text(rows))


FORMATS = (
    Format(
        "pptx",
        _MIME,
        "PowerPoint (.pptx, .ppt)",
        lambda c: SURE if "ppt/presentation.xml" in c.members else 0,
        read_pptx,
    ),
)

"""PowerPoint: a page for each slide, with its tables, charts, diagrams, comments and speaker notes."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import lxml.etree
import pptx
import pptx.exc
from pptx.opc.constants import CONTENT_TYPE
from pptx.opc.package import PartFactory
from pptx.package import Package
from pptx.parts.presentation import PresentationPart

from retrieval.errors import ReadError
from retrieval.parsing.archive import damaged, package
from retrieval.parsing.blocks import Page, PageBuilder, Reading, page_ranges, table_text
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.drawings import chart_rows, drawn_lines
from retrieval.parsing.source import Source

_MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SLIDE = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FILE_NAME = re.compile(
    r"^\S+\.(?:png|jpe?g|gif|bmp|svg|emf|wmf|tiff?)$|automatically generated$", re.IGNORECASE
)
_PARSER = lxml.etree.XMLParser(resolve_entities=False)
_BROKEN = (
    zipfile.BadZipFile, pptx.exc.PythonPptxError, lxml.etree.LxmlError, LookupError, ValueError, AttributeError,
    TypeError, EOFError, NotImplementedError, SyntaxError,
)  # fmt: skip
# Shows and templates are presentations that open in another way; the library knows two kinds only.
for _kind in (
    CONTENT_TYPE.PML_SLIDESHOW_MAIN, CONTENT_TYPE.PML_TEMPLATE_MAIN,
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
):  # fmt: skip
    PartFactory.part_type_for[_kind] = PresentationPart


def read_pptx(source: Source) -> Reading:
    """A presentation by slides. Errors: ReadError for damaged and hostile files and for one without any text."""
    try:
        with package(source) as archive:
            presentation = _presentation(archive.fp)
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


def _presentation(file: Any) -> Any:
    part = Package.open(file).main_document_part
    if not isinstance(part, PresentationPart):
        raise pptx.exc.PackageNotFoundError("its main part is no presentation")
    return part.presentation


def _slide(number: int, slide: Any) -> Page:
    builder = PageBuilder(number)
    title = slide.shapes.title
    if title is not None:
        builder.add("heading", " ".join(title.text_frame.text.split()))
    for shape in _ordered(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            _shape(shape, builder)
    for text in _beside(slide):
        builder.add("paragraph", text)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        builder.add("paragraph", f"Notes: {_lines(frame)}" if frame.text.strip() else "")
    return builder.page()


def _beside(slide: Any) -> Iterator[str]:
    """What the library passes over: shapes in a second form for older programs, and comments."""
    for choice in slide.element.iter(f"{_COMPATIBLE}Choice"):
        lines = ("".join(node.text or "" for node in p.iter(_TEXT)) for p in choice.iter(_PARAGRAPH))
        if text := "\n".join(line for line in lines if line.strip()):
            yield text
    for part in _related(slide, "comments"):
        for node in lxml.etree.fromstring(part.blob, _PARSER).iter():
            if str(node.tag).endswith("}text") and (node.text or "").strip():
                yield f"Comment: {node.text}"
            elif str(node.tag).endswith("}txBody") and (
                text := "".join(t.text or "" for t in node.iter(_TEXT))
            ):
                yield f"Comment: {text}"


def _related(slide: Any, kind: str) -> Iterator[Any]:
    for relation in slide.part.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] == kind:
            yield relation.target_part


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
    elif (diagram := shape.element.find(f".//{_DIAGRAM}relIds")) is not None:
        part = shape.part.related_part(diagram.get(f"{_RELATION}dm", ""))
        builder.add("list", "\n".join(drawn_lines(part.blob)))
    elif shape.has_text_frame:
        lines = [p for p in shape.text_frame.paragraphs if "".join(r.text for r in p.runs).strip()]
        builder.add("list" if len(lines) > 1 else "paragraph", _lines(shape.text_frame))
    else:
        # A picture is what it is said to show.
        texts = [node.text for node in shape.element.iter(_TEXT) if node.text]
        builder.add("paragraph", "\n".join(texts) or _described(shape))


def _described(shape: Any) -> str:
    """What somebody wrote about a picture; what a program wrote about it is its own name or a guess."""
    name = shape.element.find(f".//{_SLIDE}cNvPr")
    text = " ".join((name.get("descr", "") if name is not None else "").split())
    return "" if _FILE_NAME.search(text) else text


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
    titles, table = chart_rows(chart.part.blob)
    builder.add("paragraph", " – ".join(titles))
    builder.add("table", table)


FORMATS = (
    Format(
        "pptx",
        _MIME,
        "PowerPoint (.pptx, .ppt)",
        lambda c: SURE if "ppt/presentation.xml" in c.members else 0,
        read_pptx,
    ),
)

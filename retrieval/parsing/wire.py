"""A Reading or a ReadError as JSON, between the reading process and the one that asked."""

from typing import Any

import orjson

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Block, Line, Page, Reading


def reading_dump(reading: Reading) -> bytes:
    # Tuples, not names: a long document has a hundred thousand lines.
    pages = [
        (
            page.number,
            page.text,
            [(b.kind, b.start, b.end, b.heading) for b in page.blocks],
            [(line.start, line.end, line.box) for line in page.lines],
            page.ocr,
            page.confidence,
            page.aspect,
        )
        for page in reading.pages
    ]
    about = (reading.format, reading.mime, reading.paged, dict(reading.metadata), reading.warnings)
    return orjson.dumps({"about": about, "pages": pages})


def error_dump(error: ReadError) -> bytes:
    return orjson.dumps({"error": error.message, "reason": error.reason})


def load(data: bytes) -> Reading:
    """Errors: ReadError as the reader raised it, ValueError when the answer is not whole."""
    answer = _told(data)
    name, mime, paged, metadata, warnings = answer["about"]
    pages = tuple(_page(*raw) for raw in answer["pages"])
    return Reading(name, mime, pages, paged, metadata, tuple(warnings))


def picture_load(data: bytes) -> bytes:
    """A page's picture as it is. Errors: ReadError as the reader raised it."""
    if data.startswith(b"{"):
        _told(data)
    return data


def _told(data: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(data)
    if "error" in answer:
        raise ReadError(answer["error"], reason=answer["reason"])
    return answer


def _page(number: int, text: str, blocks: list[Any], lines: list[Any], *rest: Any) -> Page:
    return Page(
        number,
        text,
        tuple(Block(kind, start, end, tuple(heading)) for kind, start, end, heading in blocks),
        tuple(Line(start, end, tuple(box)) for start, end, box in lines),
        *rest,
    )

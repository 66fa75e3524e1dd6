"""Where a passage stands on its pages: what is marked on their pictures. The caller has asked for the right to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from retrieval.errors import NotFound
from retrieval.models import Document, DocumentText
from retrieval.parsing.blocks import Box

_MOST_PAGES = 8
"""A passage reaches over two pages, over more where there is little on each, as on slides."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters of a document's text."""

    document_id: UUID
    version: int
    start: int
    end: int
    page: int
    """On which it begins."""


@dataclass(frozen=True, slots=True)
class Place:
    """One page, and where on it a stretch of text stands."""

    document_id: UUID
    page: int
    aspect: float | None
    """Width by height of its picture; None where there is none."""
    boxes: tuple[Box, ...]
    """One for each line that is touched; empty where the lines' places are not known."""


def page_place(*, document: Document, number: int, start: int = 0, end: int = 0) -> Place:
    """One page of the version that serves with the boxes of `start` to `end`. Errors: NotFound."""
    row = DocumentText.objects.filter(
        document=document, version=document.serving_version, page=number
    ).first()
    if row is None:
        raise NotFound("page", f"{number} of “{document.name}”", hint="Its pages are numbered from 1.")
    return Place(document.pk, number, row.aspect, _boxes(row, start, end))


def places_of(stretches: Sequence[Stretch]) -> Mapping[Stretch, list[Place]]:
    """Pages that can be shown, with boxes, for each stretch of the version that serves now; two queries for all."""
    documents = Document.objects.in_bulk({stretch.document_id for stretch in stretches})
    shown = [
        stretch
        for stretch in stretches
        if (row := documents.get(stretch.document_id)) and row.serving_version == stretch.version
    ]
    if not shown:
        return {}
    rows = DocumentText.objects.filter(reduce(or_, map(_pages, shown)), aspect__isnull=False).order_by("page")
    by_document: dict[UUID, list[DocumentText]] = {}
    for text in rows:
        by_document.setdefault(text.document_id, []).append(text)
    return {stretch: _places(stretch, by_document.get(stretch.document_id, ())) for stretch in shown}


def _pages(stretch: Stretch) -> Q:
    pages = (stretch.page, stretch.page + _MOST_PAGES - 1)
    whole = Q(document_id=stretch.document_id, version=stretch.version)
    return whole & Q(page__range=pages, start__lt=stretch.end)


def _places(stretch: Stretch, rows: Sequence[DocumentText]) -> list[Place]:
    return [
        Place(row.document_id, row.page, row.aspect, _boxes(row, stretch.start, stretch.end))
        for row in rows
        if row.start < stretch.end and stretch.start < row.start + max(1, len(row.text))
    ]


def _boxes(row: DocumentText, start: int, end: int) -> tuple[Box, ...]:
    first, last = start - row.start, end - row.start
    return tuple(
        (left, top, right, bottom)
        for begin, stop, left, top, right, bottom in row.lines
        if begin < last and first < stop
    )

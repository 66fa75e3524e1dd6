"""Chunks that were found, as rows, and as the passages they are shown as."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection
from uuid_utils.compat import uuid7

from retrieval.scope import READABLE, Scope
from retrieval.types import Passage

# The rights are asked for once more: a grant may have gone since the legs looked.
_ROWS = """
SELECT c.id, c.document_id, c.version, c.collection_id, d.name, d.warnings,
       c.index, c.page, last.page, c.start, c."end", c.text, c.heading, l.level
FROM retrieval_chunk c JOIN retrieval_document d ON d.id = c.document_id
JOIN retrieval_collection l ON l.id = c.collection_id
LEFT JOIN LATERAL (
  SELECT t.page FROM retrieval_documenttext t
  WHERE c.page IS NOT NULL AND t.document_id = c.document_id AND t.version = c.version AND t.start < c."end"
  ORDER BY t.start DESC LIMIT 1
) last ON true
WHERE c.id = ANY(%(chunks)s::uuid[]) AND c.collection_id = ANY({readable})
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk with its score, and what a passage shows of it."""

    chunk_id: UUID
    document_id: UUID
    version: int
    collection_id: UUID
    name: str
    warnings: tuple[str, ...]
    index: int
    page: int | None
    """On which it begins; None where the format has no pages."""
    page_end: int | None
    """On which it ends, which may be the same."""
    start: int
    end: int
    text: str
    heading: str
    score: float
    level: str = "private"
    """Privacy level of its collection."""


def hits(scope: Scope, scored: Mapping[UUID, float]) -> list[Hit]:
    """The rows of these chunks, best first; what the viewer may not read or was removed meanwhile is left out."""
    if not scored:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_ROWS.format(readable=READABLE), {**scope.parameters(), "chunks": list(scored)})
        rows = cursor.fetchall()
    found = [_hit(row, scored[row[0]]) for row in rows]
    return sorted(found, key=lambda hit: (-hit.score, str(hit.chunk_id)))


def _hit(row: Sequence[Any], score: float) -> Hit:
    chunk_id, document_id, version, collection_id, name, warnings, *rest, level = row
    # Django leaves the jsonb of raw SQL as text.
    said = tuple(json.loads(warnings) if isinstance(warnings, str) else ())
    shown = (*rest, score)
    return replace(Hit(chunk_id, document_id, version, collection_id, name, said, *shown), level=level)


def merge_neighbours(found: Sequence[Hit]) -> list[Passage]:
    """Passages of hits given best first; two hits that overlap in their document become one passage.

    At most two: longer ones would crowd other documents out of the prompt. A text that came before, from another
    copy of a document, is not shown twice.
    """
    by_place = {(hit.document_id, hit.version, hit.index): hit for hit in found}
    passages: list[Passage] = []
    used: set[UUID] = set()
    said: set[str] = set()
    for hit in found:
        if hit.chunk_id in used or hit.text in said:
            continue
        used.add(hit.chunk_id)
        said.add(hit.text)
        for step in (1, -1):
            other = by_place.get((hit.document_id, hit.version, hit.index + step))
            if other is None or other.chunk_id in used:
                continue
            first, second = (hit, other) if step == 1 else (other, hit)
            if first.start <= second.start <= first.end < second.end:
                used.add(other.chunk_id)
                said.add(other.text)
                passages.append(_joined(hit, first, second))
                break
        else:
            passages.append(_passage(hit))
    return passages


def _joined(best: Hit, first: Hit, second: Hit) -> Passage:
    text = first.text + second.text[first.end - second.start :]
    heading = first.heading if first.heading == second.heading else ""
    whole = replace(best, page=first.page, page_end=second.page_end, start=first.start, end=second.end)
    return _passage(replace(whole, text=text, heading=heading))


def _passage(hit: Hit) -> Passage:
    return Passage(
        id=uuid7(),
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        document_version=hit.version,
        collection_id=hit.collection_id,
        title=hit.name,
        page=hit.page,
        page_end=hit.page_end if hit.page_end != hit.page else None,
        start=hit.start,
        end=hit.end,
        text=hit.text,
        sha256=hashlib.sha256(hit.text.encode()).hexdigest(),
        score=hit.score,
        heading=hit.heading,
        warnings=hit.warnings,
    )

"""What is stored and what waits, in figures for those who run the installation: no text, and no name of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from retrieval.models import Collection, Document, Status

ENDED = (Status.READY, Status.FAILED, Status.CANCELLED)
SHOWN_REASONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One collection; or all files that are attached to conversations together, without id and team."""

    collection_id: UUID | None
    name: str
    team_id: UUID | None
    documents: int
    failed: int
    pages: int
    size: int
    """Bytes of the originals."""
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Documents on their way in, of one state."""

    status: str
    documents: int
    size: int
    since: datetime | None
    """When the first of them entered it."""
    stalled_since: datetime | None
    """When the one that has stood still longest last got a step further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Documents that failed for the same reason."""

    step: str
    code: str
    message: str
    """Of the newest of them, its name left out."""
    documents: int
    kinds: Sequence[str]
    """Media types, as far as they were looked at."""
    latest: datetime


_SHELVES = """
SELECT CASE WHEN c.kind = %(library)s THEN c.id END AS id, max(c.name),
  CASE WHEN c.kind = %(library)s THEN c.team_id END,
  count(d.id), count(d.id) FILTER (WHERE d.status = %(failed)s),
  coalesce(sum(d.pages), 0), coalesce(sum(d.size), 0), coalesce(sum(d.chunk_count), 0)
FROM retrieval_collection c LEFT JOIN retrieval_document d ON d.collection_id = c.id
GROUP BY 1, 3 HAVING count(d.id) > 0 OR bool_or(c.kind = %(library)s) ORDER BY 7 DESC, 4 DESC, 2
"""


def shelves() -> list[Shelf]:
    """Every collection, the largest first."""
    with connection.cursor() as cursor:
        cursor.execute(_SHELVES, {"library": Collection.Kind.LIBRARY.value, "failed": Status.FAILED.value})
        return [
            Shelf(
                collection_id=row[0],
                name="Attached to conversations" if row[0] is None else row[1],
                team_id=row[2],
                documents=row[3],
                failed=row[4],
                pages=int(row[5]),
                size=int(row[6]),
                chunks=int(row[7]),
            )
            for row in cursor.fetchall()
        ]


_WAITING = """
SELECT status, count(*), sum(size), min(coalesce(stage_at, queued_at, created_at)),
  min(coalesce(progressed_at, stage_at, queued_at, created_at))
FROM retrieval_document WHERE status <> ALL(%s) GROUP BY status
"""


def waiting() -> list[Waiting]:
    """Documents on their way in, by state, in the order of the way."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [[status.value for status in ENDED]])
        found = {
            row[0]: Waiting(
                status=row[0], documents=row[1], size=int(row[2]), since=row[3], stalled_since=row[4]
            )
            for row in cursor.fetchall()
        }
    return [found[status] for status in Status.values if status in found]


_REASONS = """
SELECT error_step, error_code, (array_agg(replace(error_message, name, 'the file') ORDER BY updated_at DESC))[1],
  count(*), array_agg(DISTINCT mime) FILTER (WHERE mime <> ''), max(updated_at)
FROM retrieval_document WHERE status = %s AND updated_at >= %s
GROUP BY 1, 2 ORDER BY 4 DESC, 6 DESC LIMIT %s
"""


def reasons(since: datetime) -> list[Reason]:
    """Why documents failed since then, the commonest first."""
    with connection.cursor() as cursor:
        cursor.execute(_REASONS, [Status.FAILED.value, since, SHOWN_REASONS])
        return [
            Reason(
                step=row[0],
                code=row[1],
                message=row[2],
                documents=row[3],
                kinds=tuple(row[4] or ()),
                latest=row[5],
            )
            for row in cursor.fetchall()
        ]


def ready_since(since: datetime) -> int:
    """Documents that became ready since then."""
    return Document.objects.filter(ready_at__gte=since).count()

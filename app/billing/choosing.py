"""Reads for choosing between models: how many recorded calls another deployment would have taken, and for what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection


@dataclass(frozen=True, slots=True)
class Room:
    """What a deployment takes."""

    deployment_id: UUID
    window: int | None
    """Input and output together; None is unknown, and nothing is known to fit."""
    most_output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Chat calls of one deployment that fit another one."""

    of: UUID
    into: UUID
    calls: int
    fitting: int
    input_tokens: int
    """Of those that fit, like the rest."""
    output_tokens: int
    price: Decimal
    """What they were billed, where it is known."""


# What the sweeper had estimated stands beside the truth that took its place; only an estimate is ever taken back.
_FITS = """
SELECT e.deployment_id, r.id, count(*), count(*) FILTER (WHERE fits),
  coalesce(sum(e.input_tokens) FILTER (WHERE fits), 0), coalesce(sum(e.output_tokens) FILTER (WHERE fits), 0),
  coalesce(sum(e.price) FILTER (WHERE fits), 0)
FROM billing_ledgerentry e
CROSS JOIN unnest(%s::uuid[], %s::bigint[], %s::bigint[]) AS r(id, room, most)
CROSS JOIN LATERAL (SELECT e.input_tokens + e.output_tokens <= r.room AND e.output_tokens <= r.most) AS f(fits)
WHERE e.effective_at >= %s AND e.call_kind = 'chat' AND e.kind = 'charge' AND e.deployment_id IS NOT NULL
  AND e.deployment_id <> r.id AND NOT (e.estimated AND EXISTS (
    SELECT FROM billing_ledgerentry b WHERE b.dedupe_key = e.dedupe_key || ':reversed'))
GROUP BY 1, 2
"""


def fits(since: datetime, rooms: Sequence[Room]) -> list[Fit]:
    """Every deployment that was called since then against each of `rooms`."""
    if not rooms:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            _FITS,
            [
                [room.deployment_id for room in rooms],
                [room.window or 0 for room in rooms],
                [room.most_output for room in rooms],
                since,
            ],
        )
        return [
            Fit(
                of=row[0],
                into=row[1],
                calls=row[2],
                fitting=row[3],
                input_tokens=int(row[4]),
                output_tokens=int(row[5]),
                price=row[6],
            )
            for row in cursor.fetchall()
        ]

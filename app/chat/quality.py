"""How well questions were served, counted without a word of them: passages found, cited, and what readers said."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from app.chat.models import TurnState


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Answered questions that searched documents."""

    collection_id: UUID | None
    """None: all together; a question over two collections counts in each of them, and here once."""
    questions: int
    nothing_found: int
    """No passage was near enough, and the answer said so."""
    uncited: int
    """Passages went along, and the answer marked none of them."""
    good: int
    bad: int


_TURNS = """
WITH turn AS (
  SELECT t.id, r.collections, t.feedback ->> 'rating' AS rating, t.feedback ->> 'reason' AS reason,
    t.notices @> '[{"code": "nothing_found"}]' AS nothing,
    EXISTS (SELECT FROM chat_sentpassage p WHERE p.turn_id = t.id) AS sent,
    EXISTS (SELECT FROM chat_sentpassage p WHERE p.turn_id = t.id AND p.cited) AS cited
  FROM chat_turn t JOIN billing_reservation r ON r.id = t.reservation_id
  WHERE t.id >= %(from)s AND t.started_at >= %(since)s AND t.state = %(done)s
)
"""
_FIGURES = """count(*), count(*) FILTER (WHERE nothing), count(*) FILTER (WHERE sent AND NOT cited),
  count(*) FILTER (WHERE rating = 'good'), count(*) FILTER (WHERE rating = 'bad')"""


def _values(since: datetime) -> dict[str, Any]:
    # Ids begin with their time, so the primary key leads to the newest turns.
    return {
        "from": UUID(int=int(since.timestamp() * 1000) << 80),
        "since": since,
        "done": TurnState.DONE.value,
    }


def served(since: datetime) -> tuple[Served, list[Served]]:
    """(all together, by collection). Only answers that searched count."""
    query = f"""{_TURNS}, searched AS (SELECT * FROM turn WHERE cardinality(collections) > 0)
        SELECT NULL, {_FIGURES} FROM searched
        UNION ALL
        (SELECT c.id, {_FIGURES} FROM searched CROSS JOIN LATERAL unnest(collections) AS c(id) GROUP BY 1)"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query, _values(since))
        whole, *parts = [
            Served(
                collection_id=row[0],
                questions=row[1],
                nothing_found=row[2],
                uncited=row[3],
                good=row[4],
                bad=row[5],
            )
            for row in cursor.fetchall()
        ]
    return whole, parts


def complaints(since: datetime) -> list[tuple[str, int]]:
    """(reason, answers) of those rated bad, with or without documents, the commonest first; "" is none given."""
    query = (
        _TURNS  # noqa: S608
        + "SELECT coalesce(reason, ''), count(*) FROM turn WHERE rating = 'bad' GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, _values(since))
        return [(row[0], row[1]) for row in cursor.fetchall()]

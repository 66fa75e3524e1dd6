"""A branch of a conversation as the next question sees it: its pairs, its attachments, and what is missing from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from app.chat.models import Turn, TurnState
from app.chat.precount import Pair
from app.common.errors import NotFound

NEWEST = "newest"
"""As `parent`: continue the branch that was written last."""

_BRANCH = """
WITH RECURSIVE branch AS (
  SELECT id, parent_id, question, answer, state, attachments, 0 AS back
  FROM chat_turn WHERE conversation_id = %s AND id = %s
  UNION ALL
  SELECT t.id, t.parent_id, t.question, t.answer, t.state, t.attachments, b.back + 1
  FROM chat_turn t JOIN branch b ON t.id = b.parent_id
)
SELECT question, answer, state, attachments::text FROM branch ORDER BY back DESC
"""

_UNFINISHED: Mapping[str, Any] = {
    "code": "history_unfinished",
    "message": "The answer before this question is still being written, so the model does not see it yet.",
}


@dataclass(frozen=True, slots=True)
class Branch:
    """What a question follows."""

    parent_id: UUID | None = None
    pairs: tuple[Pair, ...] = ()
    """Oldest first. Questions without an answer carry nothing along."""
    attachments: tuple[UUID, ...] = ()
    """Documents that its questions brought along, the first attached first."""
    notices: tuple[Mapping[str, Any], ...] = ()


def branch_of(conversation_id: UUID, parent: UUID | str | None) -> Branch:
    """The branch that ends at `parent`: a turn, NEWEST, or None for a new root. Errors: NotFound."""
    if parent == NEWEST:
        newest = Turn.objects.filter(conversation_id=conversation_id).order_by("-id")
        parent = newest.values_list("id", flat=True).first()
    if not isinstance(parent, UUID):
        return Branch()
    with connection.cursor() as cursor:
        cursor.execute(_BRANCH, [conversation_id, parent])
        rows = cursor.fetchall()
    if not rows:
        raise NotFound("There is no such turn in this conversation to continue from.")
    return Branch(
        parent,
        tuple(Pair(question, answer) for question, answer, _, _ in rows if answer),
        tuple(dict.fromkeys(id_ for *_, attached in rows for id_ in _ids(attached))),
        (_UNFINISHED,) if any(state == TurnState.RUNNING for _, _, state, _ in rows) else (),
    )


def _ids(attached: str) -> list[UUID]:
    return [UUID(item["document_id"]) for item in orjson.loads(attached)]

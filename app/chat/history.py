"""A branch of a conversation as the next question sees it: its pairs, its attachments, and what is missing from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from app.chat.models import TurnState
from app.chat.precount import Pair
from app.common.db import prepared
from app.common.errors import NotFound

NEWEST = "newest"
"""As `parent`: continue the branch that was written last."""

_BRANCH = """
WITH RECURSIVE branch AS (
  SELECT id, parent_id, question, answer, state, attachments, 0 AS back
  FROM chat_turn WHERE conversation_id = %(conversation)s::uuid AND id = coalesce(%(parent)s::uuid, (
    SELECT id FROM chat_turn WHERE conversation_id = %(conversation)s::uuid ORDER BY id DESC LIMIT 1))
  UNION ALL
  SELECT t.id, t.parent_id, t.question, t.answer, t.state, t.attachments, b.back + 1
  FROM chat_turn t JOIN branch b ON t.id = b.parent_id
)
SELECT id, question, answer, state, attachments::text FROM branch ORDER BY back DESC
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
    if parent is None:
        return Branch()
    wanted = parent if isinstance(parent, UUID) else None
    with prepared() as cursor:
        cursor.execute(_BRANCH, {"conversation": conversation_id, "parent": wanted})
        rows = cursor.fetchall()
    if not rows and wanted is None:
        return Branch()
    if not rows:
        raise NotFound("There is no such turn in this conversation to continue from.")
    return Branch(
        rows[-1][0],
        tuple(Pair(question, answer) for _, question, answer, _, _ in rows if answer),
        tuple(dict.fromkeys(id_ for *_, attached in rows for id_ in _ids(attached))),
        (_UNFINISHED,) if any(state == TurnState.RUNNING for *_, state, _ in rows) else (),
    )


def _ids(attached: str) -> list[UUID]:
    return [UUID(item["document_id"]) for item in orjson.loads(attached)]

"""Reads of conversations and turns, each behind the caller's rights."""

from statistics import median
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from app.accounts.selectors import Caller
from app.chat.models import Conversation, Turn
from app.common.cache import remembered
from app.common.db import prepared
from app.common.errors import NotFound
from retrieval.models import Document

TITLE_CHARS = 80
"""An untitled conversation is shown by the beginning of its first question."""
_NO_CONVERSATION = "There is no such conversation, or it is not yours."


def conversations_of(caller: Caller) -> QuerySet[Conversation]:
    """The caller's own conversations, in teams they are in; for a key of a team, those the team's keys made."""
    first = Turn.objects.filter(conversation=OuterRef("pk")).order_by("id").values("question")[:1]
    file = (
        Document.objects.filter(collection=OuterRef("attachments_id")).order_by("created_at").values("name")
    )
    rows = _own(caller).select_related("team")
    return rows.annotate(
        first_question=Left(Subquery(first), TITLE_CHARS), first_file=Left(Subquery(file[:1]), TITLE_CHARS)
    )


def _own(caller: Caller) -> QuerySet[Conversation]:
    return Conversation.objects.filter(
        owner_id=caller.user_id, team_id__in=[team for team, _ in caller.roles]
    )


def conversation_get(caller: Caller, conversation_id: UUID) -> Conversation:
    """Errors: NotFound, also for somebody else's."""
    row = conversations_of(caller).filter(id=conversation_id).first()
    if row is None:
        raise NotFound(_NO_CONVERSATION)
    return row


# Every question reads this row; built by hand it takes a fifth of the time. The columns in the order of the model's
# fields, as `from_db` wants them.
_ASKED = """
SELECT id, team_id, model, assistant_id, collections::text, attachments_id, level FROM chat_conversation
WHERE id = %s::uuid AND owner_id IS NOT DISTINCT FROM %s::uuid AND team_id = ANY (%s::uuid[])
"""
_ASKED_FIELDS = ("id", "team_id", "model", "assistant_id", "collections", "attachments_id", "level")


def conversation_asked(caller: Caller, conversation_id: UUID) -> Conversation:
    """`conversation_get` for one more question: only the columns that a question needs, the others when they are read.

    Errors: NotFound.
    """
    with prepared() as cursor:
        cursor.execute(_ASKED, [conversation_id, caller.user_id, [team for team, _ in caller.roles]])
        row = cursor.fetchone()
    if row is None:
        raise NotFound(_NO_CONVERSATION)
    id_, team_id, model, assistant_id, collections, attachments_id, level = row
    values = (id_, team_id, model, assistant_id, orjson.loads(collections), attachments_id, level)
    return Conversation.from_db(connection.alias, _ASKED_FIELDS, values)


def turns_of(caller: Caller) -> QuerySet[Turn]:
    """Turns of the caller's conversations, and the caller's own without one (`/v1` with documents)."""
    teams = [team for team, _ in caller.roles]
    without = Q(conversation=None, asked_by_id=caller.user_id, team_id__in=teams)
    return Turn.objects.filter(Q(conversation__in=_own(caller).values("pk")) | without)


def turn_get(caller: Caller, turn_id: UUID) -> Turn:
    """Errors: NotFound, also for somebody else's."""
    row = turns_of(caller).filter(id=turn_id).first()
    if row is None:
        raise NotFound("There is no such turn, or it is not yours.")
    return row


def turns_in(conversation: Conversation) -> QuerySet[Turn]:
    """All turns of a conversation."""
    return Turn.objects.filter(conversation=conversation)


_FEW_TURNS = 5
_BYTES_PER_TOKEN, _FENCE_TOKENS = 4, 30
"""What is expected of a search is a guess in any case, so passages are not counted for it."""
_PASSAGES = """
SELECT sum(octet_length(text)), count(*) FROM chat_sentpassage
WHERE turn_id IN (
  SELECT DISTINCT turn_id FROM (
    SELECT turn_id FROM chat_sentpassage WHERE collection_id = ANY(%s) ORDER BY turn_id DESC LIMIT 240
  ) AS latest ORDER BY turn_id DESC LIMIT 20
) GROUP BY turn_id
"""


@remembered(60.0)
def passages_usual(collections: tuple[UUID, ...]) -> int | None:
    """The median of tokens, roughly, that passages took in the last turns over these collections; None: too few."""
    with connection.cursor() as cursor:
        cursor.execute(_PASSAGES, [list(collections)])
        sizes = [size / _BYTES_PER_TOKEN + number * _FENCE_TOKENS for size, number in cursor.fetchall()]
    return round(median(sizes)) if len(sizes) >= _FEW_TURNS else None

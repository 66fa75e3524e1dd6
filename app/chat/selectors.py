"""Reads of conversations and turns, each behind the caller's rights."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from app.accounts.selectors import Caller, viewer_of
from app.billing.selectors import price_billed
from app.catalog.selectors import Target
from app.chat.models import Conversation, SentPassage, Turn, TurnState
from app.common.cache import remembered
from app.common.clock import now
from app.common.db import prepared
from app.common.errors import NotFound
from retrieval.models import Document
from retrieval.selectors import collections_readable

TITLE_CHARS = 80
"""An untitled conversation is shown by the beginning of its first question."""
MEASURED_TURNS = 50
FRESH = timedelta(minutes=10)
_FEW_TURNS = 5
_BYTES_PER_TOKEN, _FENCE_TOKENS = 4, 30
"""What is expected of a search is a guess in any case, so passages are not counted for it."""


_NO_CONVERSATION = "There is no such conversation, or it is not yours."
HIDDEN: dict[str, Any] = {
    "title": "A document you may not read now",
    "page": None,
    "page_end": None,
    "heading": "",
    "start": 0,
    "end": 0,
    "text": "",
    "warnings": [],
    "readable": False,
    "reason": "no_access",
}
"""What is shown in the place of a source that this person may not read any more."""


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
    """The same for one more question: of the row what a question goes by; the rest is read when it is asked for."""
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


def sources_of(caller: Caller, turn_ids: Sequence[UUID]) -> Mapping[UUID, list[dict[str, Any]]]:
    """Passages sent, by turn and in the order of their numbers, shown as far as the caller may read now.

    A passage of a document that was removed stays readable as long as its collection is.
    """
    rows = list(SentPassage.objects.filter(turn_id__in=turn_ids).order_by("turn_id", "number"))
    asked = {row.collection_id for row in rows}
    viewer = viewer_of(caller)
    readable = (
        set(collections_readable(viewer).filter(pk__in=asked).values_list("pk", flat=True))
        if asked
        else set()
    )
    by_turn: dict[UUID, list[dict[str, Any]]] = {turn_id: [] for turn_id in turn_ids}
    for row in rows:
        by_turn[row.turn_id].append(_source(row) if row.collection_id in readable else _blanked(row))
    return by_turn


WHOLE_CHARS = 600
"""In a list of messages, how much of each part of a file that went whole; `sources/` has all of it."""


def _shortened(source: dict[str, Any]) -> dict[str, Any]:
    return source | {"text": source["text"][:WHOLE_CHARS]} if source["whole"] else source


def _source(row: SentPassage) -> dict[str, Any]:
    names = (
        "passage_id",
        "document_id",
        "document_version",
        "collection_id",
        "title",
        "page",
        "page_end",
        "heading",
        "start",
        "end",
    )
    shown = {
        name: getattr(row, name) for name in (*names, "text", "sha256", "score", "cited", "whole", "warnings")
    }
    if row.erased_at is not None:
        shown["title"] = f"Erased on {row.erased_at:%-d %B %Y}, receipt {row.receipt}"
    readable = row.erased_at is None
    return {"n": row.number, **shown, "readable": readable, "reason": None if readable else "erased"}


def _blanked(row: SentPassage) -> dict[str, Any]:
    """Number and hash stay, so that the answer's marks still count; whatever tells of the content goes."""
    return _source(row) | HIDDEN


def messages_of(caller: Caller, turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Two messages for each turn, the answer before its question, as a list that is newest first needs them."""
    turns = list(turns)
    sources = sources_of(caller, [turn.id for turn in turns])
    return [message for turn in turns for message in (_answer(turn, sources[turn.id]), _question(turn))]


def question_id(turn_id: UUID) -> str:
    """The id of a turn's question as a message; the answer has the id of the turn itself."""
    return f"{turn_id}.question"


def _question(turn: Turn) -> dict[str, Any]:
    return _EMPTY | {
        "id": question_id(turn.id),
        "turn_id": turn.id,
        "parent_id": str(turn.parent_id) if turn.parent_id else None,
        "role": "user",
        "text": turn.question,
        "attachments": turn.attachments,
        "state": TurnState.DONE,
        "created_at": turn.created_at,
    }


def _answer(turn: Turn, sources: list[dict[str, Any]]) -> dict[str, Any]:
    usage = turn.usage or {}
    # A quote is the passage's own words.
    hidden = {source["n"] for source in sources if not source["readable"]}
    return _EMPTY | {
        "id": str(turn.id),
        "turn_id": turn.id,
        "parent_id": question_id(turn.id),
        "role": "assistant",
        "text": turn.answer,
        "reasoning": turn.reasoning,
        "state": turn.state,
        "finish_reason": turn.finish_reason or None,
        "model": turn.model,
        "usage": turn.usage,
        "price": usage.get("price"),
        "timing": {"ttft_ms": None, "total_ms": None, "tokens_per_second": None} | turn.timing
        if turn.timing
        else None,
        "sources": [_shortened(source) for source in sources],
        "quotes": [quote for quote in turn.quotes if quote.get("n") not in hidden],
        "matches": [match for match in turn.matches or () if match.get("n") not in hidden],
        "notices": turn.notices,
        "error": turn.error,
        "feedback": turn.feedback,
        "created_at": turn.ended_at or turn.created_at,
    }


_EMPTY: dict[str, Any] = {
    "attachments": [],
    "reasoning": "",
    "finish_reason": None,
    "model": None,
    "usage": None,
    "price": None,
    "timing": None,
    "sources": [],
    "quotes": [],
    "matches": [],
    "notices": [],
    "error": None,
    "feedback": None,
}


def model_cards(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """What people choose a model by: window, price, and how fast and how well it answered here lately."""
    return [_card(target) | _measured(target.deployment_id) for target in targets]


def _card(target: Target) -> dict[str, Any]:
    price = price_billed(target.price_key)
    names = (
        "context_window",
        "max_output_tokens",
        "clearance",
        "leaves_premises",
        "is_demonstration",
        "tokenizer",
    )
    return {name: getattr(target, name) for name in names} | {
        "id": target.public_name,
        "name": target.public_name,
        "region": target.region or None,
        "price": [
            {
                "component": rate.component,
                "price": rate.price,
                "per_units": rate.per_units,
                "min_prompt_tokens": rate.min_prompt_tokens,
            }
            for rate in price.rates
        ]
        if price
        else None,
    }


def _measured(deployment_id: UUID) -> dict[str, Any]:
    rows = list(
        Turn.objects.filter(deployment_id=deployment_id)
        .exclude(state=TurnState.RUNNING)
        .order_by("-id")
        .values_list("timing", "state", "ended_at")[:MEASURED_TURNS]
    )
    last = next(((state, ended) for _, state, ended in rows if ended and ended > now() - FRESH), None)
    return {
        "ttft_ms": _median(timing.get("ttft_ms") for timing, _, _ in rows),
        "tokens_per_second": _median(timing.get("tokens_per_second") for timing, _, _ in rows),
        "status": None if last is None else "failing" if last[0] == TurnState.FAILED else "up",
    }


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


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 2) if known else None

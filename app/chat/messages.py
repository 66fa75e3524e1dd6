"""Turns as the messages and sources that a page shows, as far as the caller may read them now."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller, viewer_of
from app.chat.models import SentPassage, Turn, TurnState
from retrieval.selectors import collections_readable

WHOLE_CHARS = 600
"""In a list of messages, how much of each part of a file that went whole; `sources/` has all of it."""
_SHOWN = (
    *("passage_id", "document_id", "document_version", "collection_id", "title", "page", "page_end"),
    *("heading", "start", "end", "text", "sha256", "score", "cited", "whole", "warnings"),
)
"""Of a passage that may be read, beside its number."""
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


def _shortened(source: dict[str, Any]) -> dict[str, Any]:
    return source | {"text": source["text"][:WHOLE_CHARS]} if source["whole"] else source


def _source(row: SentPassage) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in _SHOWN}
    if row.erased_at is not None:
        shown["title"] = f"Erased on {row.erased_at:%-d %B %Y}, receipt {row.receipt}"
    readable = row.erased_at is None
    return {"n": row.number, **shown, "readable": readable, "reason": None if readable else "erased"}


def _blanked(row: SentPassage) -> dict[str, Any]:
    """Number and hash stay, so that the answer's marks still lead somewhere; whatever tells of the content goes."""
    return _source(row) | HIDDEN

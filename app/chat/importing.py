"""Conversations out of a ChatGPT export: branches, dates and model names kept, and a count of whatever is not. No IO.

The export is a list of conversations; each is a tree of messages (`mapping`), in which an edited question or a
regenerated answer is one more child. Here a turn is a question with its answer, and branches hang on `parent`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from app.common.errors import InvalidInput

_LATEST = 10_000_000_000
"""Seconds; a later moment is none, but milliseconds or an accident."""


@dataclass
class ImportedTurn:
    """A question with its answer; `parent` is the place of the turn before in the conversation's list."""

    key: str
    """The export's own id of the answer, or of a question that was never answered."""
    parent: int | None
    question: str
    asked_at: datetime
    answer: str = ""
    answered_at: datetime | None = None
    model: str = ""


@dataclass
class ImportedConversation:
    """One conversation, parents before children."""

    key: str
    title: str
    created_at: datetime
    updated_at: datetime
    turns: list[ImportedTurn] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Where in the tree a message stands: after which turn, and under which question that has no answer yet."""

    turn: int | None
    question: Mapping[str, Any] | None
    told: str = ""
    """What `turn` had been answered up to here: another branch may have gone on since."""


def conversations_of(export: Any, skipped: Counter[str]) -> list[ImportedConversation]:
    """The conversations of `conversations.json`; what cannot be kept is counted in `skipped` by kind.

    Errors: InvalidInput when it is no such export.
    """
    if not isinstance(export, Sequence) or not all(isinstance(item, Mapping) for item in export):
        raise InvalidInput("This is no ChatGPT export: `conversations.json` holds a list of conversations.")
    found = [_conversation(item, skipped) for item in export]
    skipped["empty conversations"] += sum(not one.turns for one in found)
    return [one for one in found if one.turns]


def _conversation(item: Mapping[str, Any], skipped: Counter[str]) -> ImportedConversation:
    mapping = item.get("mapping")
    if not isinstance(mapping, Mapping):
        raise InvalidInput("This is no ChatGPT export: a conversation has no `mapping` of its messages.")
    mapping = {key: node for key, node in mapping.items() if isinstance(node, Mapping)}
    began = _time(item.get("create_time")) or datetime.fromtimestamp(0, UTC)
    made = ImportedConversation(
        key=_storable(str(item.get("conversation_id") or item.get("id") or item.get("title"))),
        title=_storable(str(item.get("title") or "")),
        created_at=began,
        updated_at=_time(item.get("update_time")) or began,
    )
    roots = [key for key, node in mapping.items() if node.get("parent") not in mapping]
    stack = [(key, _Place(None, None)) for key in reversed(roots)]
    seen: set[str] = set()
    while stack:
        key, place = stack.pop()
        if key in seen or key not in mapping:
            continue
        seen.add(key)
        node = mapping[key]
        after = _taken(made, node.get("message"), place, skipped)
        children = node.get("children") or []
        if not children and after.question is not None:
            _add(made, after, None)
        stack += [(child, after) for child in reversed(children)]
    return made


def _taken(made: ImportedConversation, message: Any, place: _Place, skipped: Counter[str]) -> _Place:
    """Take one message into the conversation; where its children stand."""
    if not isinstance(message, Mapping):
        return place
    role = (message.get("author") or {}).get("role")
    text = _text(message, skipped)
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in {"user", "assistant"} or hidden or message.get("recipient") not in {None, "all"}:
        if text.strip() and not hidden:
            skipped[f"{'tool' if role == 'assistant' else role} messages"] += 1
        return place
    return (
        _asked(made, message, text, place) if role == "user" else _told(made, message, text, place, skipped)
    )


def _asked(made: ImportedConversation, message: Mapping[str, Any], text: str, place: _Place) -> _Place:
    # Two questions in a row: the first was never answered.
    before = _add(made, place, None) if place.question is not None else _as_told(made, place)
    return _Place(before, {**message, "text": text})


def _told(
    made: ImportedConversation,
    message: Mapping[str, Any],
    text: str,
    place: _Place,
    skipped: Counter[str],
) -> _Place:
    if not text.strip():
        return place
    if place.question is not None:
        return _Place(_add(made, place, {**message, "text": text}), None, text)
    if place.turn is None:
        skipped["answers without a question"] += 1
        return place
    # The model went on after a tool: one answer in several messages.
    went_on = f"{place.told}\n\n{text}"
    turn = made.turns[place.turn]
    if turn.answer == place.told and not any(other.parent == place.turn for other in made.turns):
        turn.answer = went_on
        return _Place(place.turn, None, went_on)
    # It went on twice, or was asked further before it did: each is a branch with an answer of its own.
    made.turns.append(replace(turn, key=_storable(str(message.get("id"))), answer=went_on))
    return _Place(len(made.turns) - 1, None, went_on)


def _as_told(made: ImportedConversation, place: _Place) -> int | None:
    """The turn that ends with what had been told here; made where the answer has gone on in another branch."""
    if place.turn is None or made.turns[place.turn].answer == place.told:
        return place.turn
    wanted = replace(made.turns[place.turn], answer=place.told)
    if wanted not in made.turns:
        made.turns.append(wanted)
    return made.turns.index(wanted)


def _add(made: ImportedConversation, place: _Place, answer: Mapping[str, Any] | None) -> int:
    question = place.question or {}
    told = answer or {}
    made.turns.append(
        ImportedTurn(
            key=_storable(str(told.get("id") or question.get("id"))),
            parent=place.turn,
            question=str(question.get("text", "")),
            asked_at=_time(question.get("create_time")) or made.created_at,
            answer=str(told.get("text", "")),
            answered_at=_time(told.get("create_time")),
            model=_storable(str((told.get("metadata") or {}).get("model_slug") or "")),
        )
    )
    return len(made.turns) - 1


def _text(message: Mapping[str, Any], skipped: Counter[str]) -> str:
    """The words of a message; pictures, recordings and files are counted."""
    content = message.get("content") or {}
    parts = content.get("parts")
    if not isinstance(parts, list):
        kind = content.get("content_type")
        return _storable(str(content.get("text") or "")) if kind in {"text", "code"} else ""
    skipped["pictures and files"] += sum(not isinstance(part, str) for part in parts)
    return _storable("\n".join(part for part in parts if isinstance(part, str)))


def _storable(text: str) -> str:
    """Without NUL and halves of characters: PostgreSQL would refuse the whole conversation for one."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _time(value: Any) -> datetime | None:
    if not isinstance(value, int | float) or not 0 < value < _LATEST:
        return None
    return datetime.fromtimestamp(value, UTC)

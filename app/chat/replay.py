"""A turn for somebody who comes back to it: its events once the live ones are gone."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from app.accounts.selectors import Caller, caller_now, viewer_of
from app.chat.events import MAX_DELTA_CHARS, TurnEvent
from app.chat.messages import HIDDEN
from app.chat.models import Turn, TurnState
from retrieval.selectors import collections_readable

_GATED = (b"event: sources\n", b"event: quotes\n", b"event: matches\n")


def shows_passages(frames: bytes) -> bool:
    """Whether any of these frames carries words of a document."""
    return any(mark in frames for mark in _GATED)


def frames_rechecked(caller: Caller, frames: bytes) -> bytes:
    """The frames as this caller may see them now: a grant or a team may have gone since the turn searched."""
    reader, parts = caller_now(caller), frames.split(b"\n\n")
    return b"\n\n".join(_rechecked(reader, part) if shows_passages(part) else part for part in parts)


def _rechecked(caller: Caller, frame: bytes) -> bytes:
    head, _, data = frame.partition(b"\ndata: ")
    items = orjson.loads(data)["items"]
    readable = _readable(caller, items)
    if head.endswith((b"quotes", b"matches")):
        # A quote is the passage's own words, and a match nearly so.
        kept = [item for item in items if item.get("collection_id") in readable]
    else:
        kept = [item if item.get("collection_id") in readable else item | HIDDEN for item in items]
    return head + b"\ndata: " + orjson.dumps({"items": kept})


def _readable(caller: Caller, items: Iterable[Mapping[str, Any]]) -> set[str]:
    asked = {item["collection_id"] for item in items if item.get("collection_id")}
    found = collections_readable(viewer_of(caller)).filter(pk__in=asked).values_list("pk", flat=True)
    return {str(pk) for pk in found}


def ended_frames(turn: Turn) -> bytes:
    """The events of an ended turn, built from its row.

    The first delta says `replace`: a reader who had part of the text must not show that part twice.
    """
    named: list[tuple[str, dict[str, object]]] = [
        (
            "turn",
            {
                "turn_id": str(turn.id),
                "conversation_id": str(turn.conversation_id) if turn.conversation_id else None,
                "parent_id": str(turn.parent_id) if turn.parent_id else None,
                "model": turn.model,
                "payer": {"team_id": str(turn.team_id)},
                "attachments": turn.attachments,
                "estimate": turn.estimate,
                "notices": turn.notices,
            },
        )
    ]
    for start in range(0, max(1, len(turn.answer)), MAX_DELTA_CHARS):
        piece: dict[str, object] = {"text": turn.answer[start : start + MAX_DELTA_CHARS]}
        named.append(("delta", piece | ({"replace": True} if start == 0 else {})))
    if turn.usage:
        named.append(("usage", turn.usage))
    if turn.state == TurnState.FAILED and turn.error:
        named.append(("error", turn.error))
    else:
        named.append(("done", {"finish_reason": turn.finish_reason or turn.state}))
    return b"".join(TurnEvent(number, name, data).frame for number, (name, data) in enumerate(named, 1))

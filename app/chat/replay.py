"""A turn for somebody who comes back to it: its events once the live ones are gone."""

from app.chat.events import MAX_DELTA_CHARS, TurnEvent
from app.chat.models import Turn, TurnState


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

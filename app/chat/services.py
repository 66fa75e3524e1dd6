"""Writes to conversations and feedback. A turn writes its own rows: see `app.chat.turn_rows`."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from app.accounts.selectors import Caller, team_of, viewer_of
from app.catalog.selectors import highest_level
from app.chat.assistants import assistant_get
from app.chat.models import Conversation, Turn, TurnState
from app.common.clock import now
from app.common.errors import Conflict, InvalidInput, NotAllowed
from retrieval.models import Collection
from retrieval.removal import collection_remove
from retrieval.selectors import collections_resolve


def conversation_create(  # noqa: PLR0913 - what a conversation may begin with
    *,
    caller: Caller,
    team: UUID | None = None,
    title: str = "",
    model: str = "",
    assistant: UUID | None = None,
    collections: Sequence[UUID] | None = None,
    level: str = "public",
) -> Conversation:
    """A new conversation, paid by one of the caller's teams from now on; what is not said, its assistant says.

    Errors: NotFound naming an unknown or unreadable collection or team, NotAllowed for viewers and models.
    """
    payer = team_of(caller, team)
    caller.require_spender(payer.id)
    asked = assistant_get(caller, assistant) if assistant else None
    if asked is not None:
        model, level = model or asked.model, highest_level(level, asked.level)
        collections = [UUID(c) for c in asked.collections] if collections is None else collections
    found = _checked(caller, model, collections or ())
    return Conversation.objects.create(
        team=payer,
        owner_id=caller.user_id,
        title=title,
        model=model,
        assistant=asked,
        collections=[str(c) for c in found],
        level=level,
    )


def conversation_update(
    *, caller: Caller, conversation: Conversation, changes: Mapping[str, Any]
) -> Conversation:
    """Change title, model, collections, level, pinned or archived.

    Errors: NotFound, NotAllowed; InvalidInput when the level would be lowered.
    """
    values = dict(changes)
    found = _checked(caller, values.get("model", ""), values.get("collections", ()))
    if "collections" in values:
        values["collections"] = [str(c) for c in found]
    if "assistant" in values:
        chosen = values.pop("assistant")
        values["assistant_id"] = assistant_get(caller, chosen).pk if chosen else None
    if "level" in values and highest_level(values["level"], conversation.level) != values["level"]:
        raise InvalidInput(
            f"The privacy level of a conversation is never lowered; it is {conversation.level}.",
            detail={"field": "level"},
        )
    for name, value in values.items():
        setattr(conversation, name, value)
    # Not `updated_at`: a conversation moves to the top by being asked in, not by being renamed or pinned.
    conversation.save(update_fields=list(values))
    return conversation


def _checked(caller: Caller, model: str, collections: Sequence[UUID]) -> list[UUID]:
    """The collections' ids, once it is sure that the caller may use all of this."""
    if model and caller.models_allowed is not None and model not in caller.models_allowed:
        raise NotAllowed(f"This key may not use `{model}`.", detail={"models": sorted(caller.models_allowed)})
    return [c.pk for c in collections_resolve(viewer_of(caller), list(collections))] if collections else []


def conversation_delete(*, conversation: Conversation, done_by: str) -> None:
    """Remove a conversation with its turns and attached files; the ledger keeps its rows.

    Errors: Conflict while a turn runs.
    """
    with transaction.atomic():
        _require_quiet(conversation)
    # The files first: what is left after a crash between the two is a conversation that can be deleted again.
    own = conversation.attachments_id
    if own is not None and (files := Collection.objects.filter(pk=own).first()):
        collection_remove(collection=files, done_by=done_by)
    with transaction.atomic():
        _require_quiet(conversation)
        conversation.delete()


def _require_quiet(conversation: Conversation) -> None:
    Conversation.objects.select_for_update().get(id=conversation.id)
    if Turn.objects.filter(conversation=conversation, state=TurnState.RUNNING).exists():
        raise Conflict("An answer is still being written here. Stop it, then delete.", code="turn_running")


def turn_feedback_set(*, turn: Turn, rating: str | None, reason: str = "", comment: str = "") -> Turn:
    """Keep what a reader thought of an answer, and why; a rating of None takes it back."""
    said = {"rating": rating, "reason": reason, "comment": comment, "at": now().isoformat()}
    turn.feedback = None if rating is None else said
    turn.save(update_fields=["feedback"])
    return turn

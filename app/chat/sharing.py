"""Shared conversations: a link shows one branch to people who are signed in, passages by each reader's own rights."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from app.accounts.models import Membership
from app.accounts.selectors import Caller
from app.chat.messages import messages_of
from app.chat.models import Audience, Conversation, ShareLink, Turn, TurnState
from app.chat.selectors import conversations_of, turns_in
from app.common.clock import now
from app.common.errors import InvalidInput, NotFound

MOST_LINKS = 50
"""Alive for one conversation."""
_NOTHING = "There is no such link. It may have ended or been taken back, or it is not for you."
_SHOWN = ("id", "turn_id", "parent_id", "role", "text", "state", "model", "created_at")
"""What a reader sees of a message; price, thinking, notices and feedback are the owner's own."""


def share_create(
    *,
    conversation: Conversation,
    turn: UUID | None = None,
    audience: str = Audience.EVERYONE,
    expires_at: datetime | None = None,
) -> ShareLink:
    """A link to the branch that ends at `turn`, else at the newest. Errors: InvalidInput, NotFound."""
    _later(expires_at)
    if _alive(ShareLink.objects.filter(conversation=conversation)).count() >= MOST_LINKS:
        raise InvalidInput(f"This conversation has {MOST_LINKS} links already. Take one back first.")
    turns = turns_in(conversation)
    leaf = turns.filter(id=turn).first() if turn else turns.order_by("-id").first()
    if leaf is None:
        if turn is None:
            raise InvalidInput("There is nothing to share yet: nothing was asked in this conversation.")
        raise NotFound("There is no such turn in this conversation.")
    return ShareLink.objects.create(
        conversation=conversation, leaf=leaf, audience=audience, expires_at=expires_at
    )


def share_change(*, share: ShareLink, changes: Mapping[str, Any]) -> ShareLink:
    """Change for whom and until when. Errors: InvalidInput."""
    _later(changes.get("expires_at"))
    for name, value in changes.items():
        setattr(share, name, value)
    share.save(update_fields=list(changes))
    return share


def share_revoke(*, share: ShareLink) -> None:
    """From now on the link is unknown to everybody."""
    ShareLink.objects.filter(id=share.id, revoked_at=None).update(revoked_at=now())


def shares_of(caller: Caller) -> QuerySet[ShareLink]:
    """The caller's links that are not revoked, those that have ended among them."""
    return ShareLink.objects.filter(
        conversation__in=conversations_of(caller).values("pk"), revoked_at=None
    ).select_related("conversation__team", "leaf")


def share_get(caller: Caller, share_id: UUID) -> ShareLink:
    """One of the caller's own links. Errors: NotFound."""
    row = shares_of(caller).filter(id=share_id).first()
    if row is None:
        raise NotFound(_NOTHING)
    return row


def share_open(caller: Caller, share_id: UUID) -> ShareLink:
    """A link as a reader follows it. Errors: NotFound, the same for one that never was, has ended or is for others."""
    rows = _alive(ShareLink.objects.filter(id=share_id))
    row = rows.select_related("conversation__team", "conversation__owner").first()
    if row is None or not _stands(row.conversation):
        raise NotFound(_NOTHING)
    if row.audience == Audience.TEAM and caller.role_in(row.conversation.team_id) is None:
        raise NotFound(_NOTHING)
    return row


def shared_turns(share: ShareLink) -> QuerySet[Turn]:
    """The finished turns of the branch that a link shows."""
    path = branch_ids(share.conversation, share.leaf_id)
    return turns_in(share.conversation).filter(id__in=path).exclude(state=TurnState.RUNNING)


def branch_ids(conversation: Conversation, leaf_id: UUID) -> list[UUID]:
    """The turns from the first question to `leaf_id`, which is last."""
    parents = dict(turns_in(conversation).values_list("id", "parent_id"))
    path: list[UUID] = []
    at: UUID | None = leaf_id
    while at is not None and at in parents:
        path.append(at)
        at = parents[at]
    return path[::-1]


def shared_messages(caller: Caller, turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Messages as a reader sees them: passages of documents that this reader may not read are only counted."""
    return [_for_reader(message) for message in messages_of(caller, turns)]


def _for_reader(message: Mapping[str, Any]) -> dict[str, Any]:
    sources = [source for source in message["sources"] if source["reason"] != "no_access"]
    return {name: message[name] for name in _SHOWN} | {
        "sources": sources,
        "hidden_passages": len(message["sources"]) - len(sources),
        "quotes": [{"n": quote["n"], "text": quote["text"]} for quote in message["quotes"]],
    }


def share_url(share: ShareLink) -> str:
    """The address to hand on."""
    return f"{settings.PUBLIC_URL}/s/{share.id}/"


def _alive(rows: QuerySet[ShareLink]) -> QuerySet[ShareLink]:
    return rows.filter(revoked_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=now()))


def _stands(conversation: Conversation) -> bool:
    """A link lives as long as its owner could make it: not suspended, and still in the team that it belongs to."""
    owner = conversation.owner
    if owner is None:
        return True
    return (
        owner.is_active and Membership.objects.filter(team_id=conversation.team_id, user_id=owner.id).exists()
    )


def _later(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= now():
        raise InvalidInput("The link would have ended already.", detail={"field": "expires_at"})

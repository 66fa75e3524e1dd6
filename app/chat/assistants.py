"""Saved assistants: made and changed by their team, used by whoever it is shared with, under the user's own rights."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.text import slugify

from app.accounts.models import Team
from app.accounts.selectors import MANAGING_ROLES, SPENDING_ROLES, Caller, team_of, viewer_of
from app.chat.models import Assistant
from app.common.errors import Conflict, InvalidInput, NotAllowed, NotFound
from app.gate.routing import choices
from retrieval.selectors import collections_resolve

PREFIX = "assistant/"
"""Before the slug, where `/v1` names a model."""
MOST_PROMPT_CHARS = 20_000


def assistants_of(caller: Caller) -> QuerySet[Assistant]:
    """Assistants that the caller may use: of their teams, and those shared with them; by name."""
    teams = [team for team, _ in caller.roles]
    shared = Assistant.shared_with.through.objects.filter(team_id__in=teams).values("assistant_id")
    found = Assistant.objects.filter(Q(team_id__in=teams) | Q(pk__in=shared))
    return found.select_related("team").prefetch_related("shared_with").order_by("name", "id")


def assistant_get(caller: Caller, assistant_id: UUID) -> Assistant:
    """Errors: NotFound, also for one of others."""
    return _found(assistants_of(caller).filter(pk=assistant_id).first(), str(assistant_id))


def assistant_named(caller: Caller, name: str) -> Assistant | None:
    """The assistant that a model's name stands for; None for any other model. Errors: NotFound."""
    if not name.startswith(PREFIX):
        return None
    return _found(
        assistants_of(caller).filter(slug=name.removeprefix(PREFIX)).first(), name, "model_not_found"
    )


def _found(row: Assistant | None, name: str, code: str | None = None) -> Assistant:
    if row is None:
        raise NotFound(
            f"There is no assistant {name}, or it is not shared with you.",
            detail={"assistant": name},
            code=code,
        )
    return row


def assistant_may_change(caller: Caller, assistant: Assistant) -> bool:
    """Whoever made it and is still a member, and those who manage its team."""
    role = caller.role_in(assistant.team_id)
    mine = caller.user_id is not None and assistant.created_by_id == caller.user_id
    return role in MANAGING_ROLES or (mine and role in SPENDING_ROLES)


def assistant_create(*, caller: Caller, team: UUID | None = None, **fields: Any) -> Assistant:
    """A new assistant of one of the caller's teams.

    Errors: NotFound naming a team or collection, NotAllowed for viewers, InvalidInput, Conflict on a taken slug.
    """
    owner = team_of(caller, team)
    caller.require_spender(owner.pk)
    row = Assistant(team=owner, created_by_id=caller.user_id)
    return _written(caller, row, {"slug": slugify(fields["name"])[:60], **fields})


def assistant_update(*, caller: Caller, assistant: Assistant, changes: Mapping[str, Any]) -> Assistant:
    """Change what is given. Errors: as of `assistant_create`; NotAllowed for who may only use it."""
    _require_change(caller, assistant)
    return _written(caller, assistant, changes)


def assistant_delete(*, caller: Caller, assistant: Assistant) -> None:
    """Remove it; conversations with it go on without its prompt. Errors: NotAllowed."""
    _require_change(caller, assistant)
    assistant.delete()


def _require_change(caller: Caller, assistant: Assistant) -> None:
    if not assistant_may_change(caller, assistant):
        raise NotAllowed(
            f"“{assistant.name}” belongs to {assistant.team.name}: whoever made it and the team's admins can change it."
        )


def _written(caller: Caller, row: Assistant, changes: Mapping[str, Any]) -> Assistant:
    values = dict(changes)
    shared: Sequence[UUID] | None = values.pop("shared_with", None)
    if "collections" in values:
        resolved = collections_resolve(viewer_of(caller), list(values["collections"]))
        values["collections"] = [str(c.pk) for c in resolved]
    if "model" in values:
        _require_model(values["model"])
    if "slug" in values and not values["slug"]:
        raise InvalidInput(
            "The slug needs a letter or a digit: it is the name that programs use.",
            detail={"fields": {"slug": ["empty"]}},
        )
    teams = None if shared is None else [team_of(caller, team_id) for team_id in shared]
    for name, value in values.items():
        setattr(row, name, value)
    return _saved(row, teams)


def _require_model(name: str) -> None:
    known = list(dict.fromkeys(target.public_name for target in choices()))
    if name not in known:
        raise InvalidInput(
            f"There is no model `{name}`. Models here: {', '.join(known) or 'none yet'}.",
            detail={"fields": {"model": ["unknown"]}},
        )


def _saved(row: Assistant, teams: Sequence[Team] | None) -> Assistant:
    try:
        with transaction.atomic():
            row.save()
            if teams is not None:
                row.shared_with.set(teams)
    except IntegrityError as exc:
        raise Conflict(
            f"The name `{PREFIX}{row.slug}` is taken. Choose another slug.", detail={"field": "slug"}
        ) from exc
    return row

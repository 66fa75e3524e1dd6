"""Writes: collections, and who may use them. Each takes a row that a selector gave out under the caller's rights."""

import re
from collections.abc import Mapping
from uuid import UUID

from django.db import IntegrityError, transaction

from retrieval.errors import Conflict, Invalid
from retrieval.models import LEVELS, Collection, Grant
from retrieval.names import name_clean
from retrieval.previews import chunking_settings
from retrieval.types import VERBS, Verb

_PRINCIPAL = re.compile(r"^(user|team):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def collection_create(  # noqa: PLR0913 - what a collection is made with
    *,
    name: str,
    team_id: UUID,
    created_by: str,
    level: str = "internal",
    description: str = "",
    kind: str = Collection.Kind.LIBRARY,
    private_to: str = "",
) -> Collection:
    """A new collection, private to its owner team: the team gets the one grant, `manage`.

    Whoever made it has it through the team, so that leaving the team or losing the role takes it away. `private_to`
    names the one principal that gets the grant instead, of what is nobody else's in the team.

    Errors: Invalid (name, level), Conflict when the team has one of this name.
    """
    collection = Collection(
        name=name_clean(name, "name"),
        team_id=team_id,
        created_by=created_by,
        level=_level(level),
        description=description,
        kind=kind,
    )
    with transaction.atomic():
        _save_named(collection)
        _grant(collection, private_to or f"team:{team_id}", "manage", created_by)
    return collection


def collection_update(
    *,
    collection: Collection,
    name: str | None = None,
    level: str | None = None,
    description: str | None = None,
    chunking: Mapping[str, int] | None = None,
) -> Collection:
    """Change what is given, leave the rest; new chunk sizes count for what is read from then on.

    Errors: Invalid, Conflict on a taken name.
    """
    if name is not None:
        collection.name = name_clean(name, "name")
    if level is not None:
        collection.level = _level(level)
    if description is not None:
        collection.description = description
    if chunking is not None:
        chunking_settings(chunking)
        collection.chunking = dict(chunking)
    with transaction.atomic():
        _save_named(collection)
    return collection


def grant_set(*, collection: Collection, principal: str, verb: Verb | None, created_by: str) -> Grant | None:
    """Let a principal use the collection up to `verb`; None takes the grant away. Errors: Invalid, Conflict."""
    if not _PRINCIPAL.match(principal):
        raise Invalid("principal", f"“{principal}” is not user:<uuid> or team:<uuid>.")
    if verb is not None:
        if verb not in VERBS:
            raise Invalid("verb", f"“{verb}” is not one of {', '.join(VERBS)}.")
        return _grant(collection, principal, verb, created_by)
    others = collection.grants.filter(verb="manage").exclude(principal=principal)
    if not others.exists():
        raise Conflict("Nobody could manage this collection any more. Give someone else `manage` first.")
    collection.grants.filter(principal=principal).delete()
    return None


def _level(level: str) -> str:
    if level not in LEVELS:
        raise Invalid("level", f"“{level}” is not one of {', '.join(LEVELS)}.")
    return level


def _save_named(collection: Collection) -> None:
    try:
        with transaction.atomic():
            collection.save()
    except IntegrityError as exc:
        raise Conflict(
            f"This team already has a collection named “{collection.name}”. Choose another name."
        ) from exc


def _grant(collection: Collection, principal: str, verb: Verb, created_by: str) -> Grant:
    values = {"verb": verb, "created_by": created_by, "team_id": collection.team_id}
    grant, _ = Grant.objects.update_or_create(collection=collection, principal=principal, defaults=values)
    return grant

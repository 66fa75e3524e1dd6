"""Collections as the API makes and shows them."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, prefetch_related_objects

from app.accounts.colleagues import colleague_principal, principal_names
from app.accounts.models import Team
from app.accounts.selectors import Caller, principal_of, team_of, viewer_of
from app.audit.services import Verb as AuditVerb
from app.audit.services import audit
from retrieval.collections import collection_create, grant_set
from retrieval.models import Collection, Document, Grant
from retrieval.previews import chunking_shown
from retrieval.types import VERBS, Verb, Viewer


def collection_make(*, caller: Caller, team: UUID | None = None, **fields: Any) -> Collection:
    """A collection private to its owner team. Errors: NotFound, NotAllowed below admin, Conflict on a taken name."""
    owner = team_of(caller, team)
    caller.require_manager(owner.id)
    return collection_create(team_id=owner.id, created_by=principal_of(caller), **fields)


@transaction.atomic
def collection_grant(
    *, caller: Caller, collection: Collection, verb: Verb | None, principal: str = "", email: str = ""
) -> None:
    """Give a team or a person a right in a collection, or take it away; `email` names a person of the caller's teams.

    Errors: of `grant_set`, NotFound.
    """
    principal = principal or colleague_principal(caller, email)
    before = (
        Grant.objects.filter(collection=collection, principal=principal)
        .values_list("verb", flat=True)
        .first()
    )
    grant_set(collection=collection, principal=principal, verb=verb, created_by=principal_of(caller))
    audit(
        AuditVerb.GRANT_CHANGED,
        team_id=collection.team_id,
        object_kind="collection",
        object_id=collection.id,
        before=f"{principal} {before}" if before else "",
        after=f"{principal} {verb}" if verb else "",
    )


def grants_shown(rows: Iterable[Grant]) -> list[dict[str, Any]]:
    """Grants with what people call those who have them."""
    grants = list(rows)
    names = principal_names(row.principal for row in grants)
    return [
        {
            "principal": row.principal,
            "name": names.get(row.principal),
            "verb": row.verb,
            "created_at": row.created_at,
        }
        for row in grants
    ]


def collections_shown(caller: Caller, rows: Sequence[Collection]) -> list[dict[str, Any]]:
    """Collections with their team's name, how many documents they hold, and what the caller may do."""
    viewer = viewer_of(caller)
    prefetch_related_objects(rows, "grants")
    teams = Team.objects.in_bulk({row.team_id for row in rows})
    counts = dict(
        Document.objects.filter(collection__in=[row.pk for row in rows])
        .values_list("collection")
        .annotate(n=Count("pk"))
    )
    names = ("name", "description", "level", "kind", "created_at", "updated_at")
    return [
        {name: getattr(row, name) for name in names}
        | {
            "id": row.pk,
            "team": {
                "id": row.team_id,
                "name": teams[row.team_id].name if row.team_id in teams else "a former team",
            },
            "chunking": chunking_shown(row.chunking),
            "document_count": counts.get(row.pk, 0),
            "verbs": _verbs(viewer, row),
        }
        for row in rows
    ]


def _verbs(viewer: Viewer, row: Collection) -> list[Verb]:
    """As `retrieval.selectors.collection_verbs`, from grants that were read for the whole page at once."""
    return [
        verb
        for rank, verb in enumerate(VERBS)
        if any(
            g.verb in VERBS[rank:] and g.principal in viewer.principals_for(verb) for g in row.grants.all()
        )
    ]

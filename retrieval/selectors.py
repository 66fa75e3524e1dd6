"""Reads, each behind the viewer's rights: what may not be read looks exactly like what does not exist."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from retrieval.errors import Forbidden, NotFound
from retrieval.models import (
    WORKING,
    Collection,
    Document,
    DocumentText,
    EmbeddingSpace,
    Grant,
    Receipt,
    Status,
)
from retrieval.types import VERBS, Verb, Viewer


@dataclass(frozen=True, slots=True)
class TextPage:
    """One page of what the machine read."""

    number: int
    text: str
    start: int
    """Offset of the first character in the whole document text."""
    aspect: float | None = None
    """Width by height of the page's picture; None where it is not known or there is none."""


def _granted(viewer: Viewer, verb: Verb) -> QuerySet[Grant]:
    """Grants that let this viewer do `verb`: of that verb or a stronger one."""
    return Grant.objects.filter(
        verb__in=VERBS[VERBS.index(verb) :], principal__in=viewer.principals_for(verb)
    )


def _collections(viewer: Viewer, verb: Verb) -> QuerySet[Collection]:
    return Collection.objects.filter(pk__in=_granted(viewer, verb).values("collection_id"))


def collections_readable(viewer: Viewer) -> QuerySet[Collection]:
    """Every collection the viewer may search, newest first; those of conversations included."""
    return _collections(viewer, "read").order_by("-created_at")


def searched_owners(viewer: Viewer, ids: Sequence[UUID] | None) -> list[tuple[str, UUID]]:
    """(privacy level, owner team) among what a search of these collections looks through; None: all that is readable.

    A question says much of what it is asked about, so it goes only where that may go. A collection without chunks
    counts for nothing: there is nothing in it to be found.
    """
    searched = _collections(viewer, "read").filter(chunk_count__gt=0)
    if ids is not None:
        searched = searched.filter(pk__in=ids)
    return list(searched.order_by().values_list("level", "team_id").distinct())


def collections_resolve(viewer: Viewer, ids: Sequence[UUID]) -> list[Collection]:
    """The collections of these ids in their order. Errors: NotFound naming the first unknown or unreadable one."""
    found = {c.pk: c for c in _collections(viewer, "read").filter(pk__in=ids)}
    missing = [item for item in ids if item not in found]
    if missing:
        raise NotFound("collection", missing[0])
    return [found[item] for item in dict.fromkeys(ids)]


_NAMED = 10
"""How many names a refusal lists."""


def collection_named(viewer: Viewer, name: str) -> Collection:
    """The readable collection of this name, the newest if several teams have one. Errors: NotFound."""
    readable = collections_readable(viewer)
    found = readable.filter(name__iexact=name).first()
    if found is None:
        names = (
            ", ".join(f"“{known}”" for known in readable.values_list("name", flat=True)[:_NAMED])
            or "none yet"
        )
        raise NotFound("collection", f"“{name}”", hint=f"Collections here: {names}.")
    return found


def collection_get(viewer: Viewer, collection_id: UUID) -> Collection:
    """A readable collection. Errors: NotFound."""
    return collections_resolve(viewer, [collection_id])[0]


def _with_verb(viewer: Viewer, collection: Collection, verb: Verb) -> Collection:
    if not _granted(viewer, verb).filter(collection=collection).exists():
        raise Forbidden(
            f"You may read “{collection.name}”, but not {verb} it. Ask its owner for the right to.",
            detail={"verb": verb, "id": str(collection.pk)},
        )
    return collection


def collection_writable(viewer: Viewer, collection_id: UUID) -> Collection:
    """A collection the viewer may add to. Errors: NotFound if unreadable, Forbidden if only readable."""
    return _with_verb(viewer, collection_get(viewer, collection_id), "write")


def collection_manageable(viewer: Viewer, collection_id: UUID) -> Collection:
    """A collection the viewer may share, rename and delete. Errors: NotFound if unreadable, else Forbidden."""
    return _with_verb(viewer, collection_get(viewer, collection_id), "manage")


def collection_verbs(viewer: Viewer, collection: Collection) -> tuple[Verb, ...]:
    """What the viewer may do with a collection, weakest first; empty when not even reading."""
    return tuple(verb for verb in VERBS if _granted(viewer, verb).filter(collection=collection).exists())


def grants_list(viewer: Viewer, collection_id: UUID) -> QuerySet[Grant]:
    """Who may use a collection, for those who manage it. Errors: as collection_manageable."""
    return Grant.objects.filter(collection=collection_manageable(viewer, collection_id)).order_by(
        "created_at"
    )


def documents_list(viewer: Viewer, collection_id: UUID) -> QuerySet[Document]:
    """Documents of a readable collection, newest first. Errors: NotFound."""
    return Document.objects.filter(collection=collection_get(viewer, collection_id)).order_by("-created_at")


def documents_unread(collection_ids: Sequence[UUID]) -> int:
    """How many documents of these collections are still on their way in, with nothing of them to be found yet; for a
    caller who was let search them.
    """
    waiting = Document.objects.filter(status__in=(Status.QUEUED, *WORKING), serving_version=0)
    return waiting.filter(collection__in=collection_ids).count()


MOST_CHANGED = 200


def documents_changed(
    viewer: Viewer, collection_id: UUID, since: datetime, named: Iterable[UUID | str] = ()
) -> list[Document]:
    """Documents of a readable collection that are not finished, or changed their state since: the newest changes first,
    MOST_CHANGED of each kind at most; and those of `named` that are still in it. Errors: NotFound.
    """
    rows = documents_list(viewer, collection_id).order_by("-updated_at")
    changed = rows.filter(updated_at__gte=since)[:MOST_CHANGED]
    unfinished = rows.filter(status__in=(Status.QUEUED, *WORKING)).order_by("queued_at")[:MOST_CHANGED]
    return list({row.pk: row for row in (*changed, *unfinished, *rows.filter(pk__in=named))}.values())


def documents_removed(collection_id: UUID, since: datetime) -> list[UUID]:
    """What was removed from a collection since, the latest first, MOST_CHANGED at most; for a caller that was given the
    collection's documents by a selector.
    """
    rows = Receipt.objects.filter(
        collection_id=collection_id, document_id__isnull=False, created_at__gte=since
    )
    return [
        row
        for row in rows.order_by("-created_at").values_list("document_id", flat=True)[:MOST_CHANGED]
        if row
    ]


def document_get(viewer: Viewer, document_id: UUID) -> Document:
    """A readable document with its collection. Errors: NotFound."""
    readable = _granted(viewer, "read").values("collection_id")
    found = (
        Document.objects.select_related("collection")
        .filter(pk=document_id, collection_id__in=readable)
        .first()
    )
    if found is None:
        raise NotFound("document", document_id)
    return found


def document_writable(viewer: Viewer, document_id: UUID) -> Document:
    """A document the viewer may replace, retry or remove. Errors: NotFound if unreadable, else Forbidden."""
    document = document_get(viewer, document_id)
    _with_verb(viewer, document.collection, "write")
    return document


def document_manageable(viewer: Viewer, document_id: UUID) -> Document:
    """A document the viewer may erase. Errors: NotFound if unreadable, else Forbidden."""
    document = document_get(viewer, document_id)
    _with_verb(viewer, document.collection, "manage")
    return document


def receipt_get(viewer: Viewer, number: str) -> Receipt:
    """A receipt, for whoever got it and whoever manages what its team owns. Errors: NotFound."""
    found = Receipt.objects.filter(number=number).first()
    if found is None or not _may_see(viewer, found):
        raise NotFound("receipt", number)
    return found


def receipt_of_removed(viewer: Viewer, document_id: UUID) -> Receipt:
    """The receipt of a document that was removed, for whoever may erase what is left of it. Errors: NotFound."""
    found = Receipt.objects.filter(document_id=document_id, kind=Receipt.Kind.REMOVED).first()
    if found is None or not _manages(viewer, found):
        raise NotFound("document", document_id)
    return found


def _may_see(viewer: Viewer, receipt: Receipt) -> bool:
    return receipt.done_by in viewer.principals or _manages(viewer, receipt)


def _manages(viewer: Viewer, receipt: Receipt) -> bool:
    if f"team:{receipt.team_id}" in viewer.principals_for("manage"):
        return True
    return _granted(viewer, "manage").filter(collection=receipt.collection_id).exists()


def document_pages(document: Document, *, after: int = 0, limit: int | None = None) -> list[TextPage]:
    """What the machine read of the version that serves, page by page from the one behind `after`; none before it is
    ready. For a document that the caller was given by a selector.
    """
    rows = (
        DocumentText.objects.filter(document=document, version=document.serving_version, page__gt=after)
        .order_by("page")
        .values_list("page", "text", "start", "aspect")[:limit]
    )
    return [TextPage(*row) for row in rows]


def space_active() -> EmbeddingSpace | None:
    """The embedding space that search uses now, or None before the first document."""
    return EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()

"""Files of a conversation: its private collection, and what was read of them."""

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Length

from app.accounts.selectors import Caller, principal_of
from app.catalog.models import IMAGES
from app.catalog.selectors import Target, highest_level
from app.chat.attachments import MOST_CHARACTERS_PER_TOKEN, Attachment, Origin, pieces_of, room_of
from app.chat.models import Conversation
from app.common.errors import Conflict, NotFound
from inference_client.types import ImagePart
from retrieval import storage
from retrieval.collections import collection_create, collection_update
from retrieval.models import Collection, Document, DocumentText, Status
from retrieval.selectors import TextPage
from retrieval.stores import Gone
from retrieval.types import Passage

MOST_ATTACHMENTS = 50
_PICTURE_NAMES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
_MOST_PICTURE_BYTES = 20_000_000
_TEXTS_KEPT = 32
"""Files whose text stays in memory while somebody types about them."""


@transaction.atomic
def attachments_collection(*, caller: Caller, conversation: Conversation) -> Collection:
    """The conversation's own collection, which its owner alone may read; made when it is first needed."""
    row = Conversation.objects.select_for_update().select_related("team").get(pk=conversation.pk)
    found = Collection.objects.filter(pk=row.attachments_id).first() if row.attachments_id else None
    level = highest_level(row.level, row.team.level)
    if found is None:
        found = collection_create(
            name=f"Attachments of conversation {row.pk}",
            team_id=row.team_id,
            created_by=principal_of(caller),
            kind=Collection.Kind.CONVERSATION,
            level=level,
            # What a key of a team attaches is for the team's keys, like the conversation, and for none of its people.
            private_to=f"user:{caller.user_id}" if caller.user_id else f"keys:{row.team_id}",
        )
        row.attachments_id = conversation.attachments_id = found.pk
        row.save(update_fields=["attachments_id"])
    elif highest_level(found.level, level) != found.level:
        # The conversation has touched something more private since: so may what is attached from now on.
        collection_update(collection=found, level=level)
    return found


def attachment_documents(conversation: Conversation) -> list[Document]:
    """Every file of the conversation, the first attached first; the caller's right to it was checked."""
    if conversation.attachments_id is None:
        return []
    return list(Document.objects.filter(collection=conversation.attachments_id).order_by("created_at", "pk"))


def attachments_of(
    conversation: Conversation,
    *,
    named: Sequence[UUID],
    inherited: Sequence[UUID],
    target: Target,
    draft: bool,
) -> tuple[Attachment, ...]:
    """The files of one question: those its branch brought along, then those it names.

    What was removed since is no part of it. A draft may name files that are still being read, a question not.
    Errors: NotFound naming a document that is no file of this conversation, Conflict while one cannot be sent.
    """
    rows = {row.pk: row for row in attachment_documents(conversation)} if named or inherited else {}
    for wanted in named:
        if wanted not in rows:
            raise NotFound(
                f"There is no file {wanted} in this conversation; it may have been removed.",
                detail={"document": str(wanted)},
            )
    found = tuple(
        _attachment(rows[wanted], target) for wanted in dict.fromkeys((*inherited, *named)) if wanted in rows
    )
    if draft:
        return found
    for attachment in found:
        if attachment.document_id in named:
            _require_ready(attachment)
    return tuple(a for a in found if a.status == Status.READY)


def _require_ready(attachment: Attachment) -> None:
    if attachment.status == Status.READY:
        return
    ended = attachment.status in (Status.FAILED, Status.CANCELLED)
    words = (
        f"“{attachment.name}” could not be read, so it cannot go along. {attachment.error} Remove it and send again."
        if ended
        else f"“{attachment.name}” is still being read. Your question is kept; send it again in a moment."
    )
    raise Conflict(
        words,
        detail={"document": str(attachment.document_id), "status": attachment.status},
        retry_after=None if ended else 2,
        code="attachment_not_ready",
    )


def _attachment(row: Document, target: Target) -> Attachment:
    picture = _picture(row) if IMAGES in target.capabilities else None
    ready = row.serving_version > 0 or picture is not None
    error = (row.error or {}).get("message", "")
    return Attachment(
        document_id=row.pk,
        name=row.name,
        pieces=_pieces(row, target) if row.serving_version and picture is None else (),
        picture=picture,
        status=Status.READY.value if ready else row.status,
        error="" if ready else error,
    )


def _picture(row: Document) -> ImagePart | None:
    """The picture itself, also one in which no text was found."""
    named = row.name.lower().endswith(_PICTURE_NAMES)
    if not (row.mime.startswith("image/") or named) or row.size > _MOST_PICTURE_BYTES:
        return None
    try:
        with storage.blob_file(row.sha256) as path:
            return ImagePart(path.read_bytes(), row.mime or "image/*")
    except Gone:
        return None


def _pieces(row: Document, target: Target) -> tuple[Passage, ...]:
    """Nothing of a file that is too long in any case: its text is then not even loaded."""
    texts = DocumentText.objects.filter(document=row, version=row.serving_version)
    size = texts.aggregate(size=Sum(Length("text")))["size"] or 0
    if size > room_of(target.context_window) * MOST_CHARACTERS_PER_TOKEN:
        return ()
    return _text(row.pk, row.serving_version)


@lru_cache(maxsize=_TEXTS_KEPT)
def _text(document_id: UUID, version: int) -> tuple[Passage, ...]:
    """The whole text of a version, which never changes."""
    row = Document.objects.get(pk=document_id)
    rows = DocumentText.objects.filter(document=row, version=version).order_by("page")
    pages = [TextPage(number=r.page, text=r.text, start=r.start) for r in rows]
    origin = Origin(
        document_id=row.pk,
        version=version,
        collection_id=row.collection_id,
        title=row.name,
        paged=row.pages is not None,
        warnings=tuple(map(str, row.warnings)),
    )
    return pieces_of(pages, origin)


def beginnings(documents: Sequence[UUID], most: int) -> list[Passage]:
    """How each of these files begins, for a question that names nothing in them ("Summarise this")."""
    rows = Document.objects.filter(pk__in=documents, serving_version__gt=0).order_by("created_at", "pk")
    return [piece for row in rows for piece in _text(row.pk, row.serving_version)[:most]]

"""Erasing a document everywhere: from the store, and from every passage of it that was ever sent to a model.

Hash, date and the receipt's number stay, so that it can still be shown what an answer rested on and that it is gone.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from app.audit.services import Verb, audit
from app.chat.event_store import events_key
from app.chat.models import SentPassage, Turn
from app.common.clock import now
from app.common.redis_door import Unavailable, sync_redis
from retrieval.models import Collection, Document, Receipt
from retrieval.removal import collection_remove, document_remove, receipt_count, receipt_erased

_LATE = timedelta(hours=3)
"""Longer than any turn: one that ran during the erasure stores its passages at its end."""


def document_erase(*, document: Document, done_by: str) -> Receipt:
    """Remove a document and blank what was sent of it. Answers keep the model's own words."""
    receipt = document_remove(document=document, done_by=done_by, kind=Receipt.Kind.ERASED)
    return _erase_sent(receipt)


def collection_erase(*, collection: Collection, done_by: str) -> Receipt:
    """Remove a collection and blank what was sent of its documents."""
    receipt = collection_remove(collection=collection, done_by=done_by, kind=Receipt.Kind.ERASED)
    return _erase_sent(receipt)


def removed_erase(*, removed: Receipt, done_by: str) -> Receipt:
    """Blank what was sent of a document that was removed earlier."""
    return _erase_sent(receipt_erased(removed=removed, done_by=done_by))


def erasures_repeat() -> int:
    """Blank what turns stored that were running during an erasure. Returns how many passages."""
    total = 0
    for receipt in Receipt.objects.filter(kind=Receipt.Kind.ERASED, created_at__gt=now() - _LATE):
        if late := _blank_sent(receipt):
            receipt_count(receipt, {"passages": receipt.counts.get("passages", 0) + late})
            total += late
    return total


def _erase_sent(receipt: Receipt) -> Receipt:
    audit(
        Verb.ERASE,
        team_id=receipt.team_id,
        object_kind="document" if receipt.document_id else "collection",
        object_id=receipt.document_id or receipt.collection_id,
        after=receipt.number,
    )
    receipt_count(receipt, {"passages": _blank_sent(receipt)})
    return receipt


def _blank_sent(receipt: Receipt) -> int:
    """Blank passages, quotes, names of attached files and replayable events of what the receipt names."""
    named = (
        Q(document_id=receipt.document_id) if receipt.document_id else Q(collection_id=receipt.collection_id)
    )
    with transaction.atomic():
        found = SentPassage.objects.select_for_update().filter(named, erased_at=None)
        numbers: dict[UUID, set[int]] = {}
        for turn_id, number in found.values_list("turn_id", "number"):
            numbers.setdefault(turn_id, set()).add(number)
        for turn in Turn.objects.select_for_update().filter(pk__in=numbers).exclude(quotes=[], matches=None):
            turn.quotes = [quote for quote in turn.quotes if quote.get("n") not in numbers[turn.pk]]
            turn.matches = [match for match in turn.matches or () if match.get("n") not in numbers[turn.pk]]
            turn.save(update_fields=["quotes", "matches"])
        _blank_names(receipt)
        blanked = SentPassage.objects.filter(named, erased_at=None).update(
            text="", heading="", title="", warnings=[], erased_at=now(), receipt=receipt.number
        )
    _forget_events(numbers)
    return blanked


def _blank_names(receipt: Receipt) -> None:
    """Take the names of attached files from the questions that they went along with; they were of one conversation."""
    erased = {"name": f"Erased, receipt {receipt.number}", "error": None}
    gone = str(receipt.document_id)
    turns = Turn.objects.select_for_update().filter(conversation__attachments_id=receipt.collection_id)
    for turn in turns.exclude(attachments=[]):
        named = [
            file for file in turn.attachments if receipt.document_id is None or file["document_id"] == gone
        ]
        if any(not file["name"].startswith("Erased, receipt ") for file in named):
            for file in named:
                file.update(erased)
            turn.save(update_fields=["attachments"])


def _forget_events(turns: dict[UUID, set[int]]) -> None:
    """Replayable events hold sources and quotes; without them a replay is made of the stored turn."""
    if not turns:
        return
    try:
        sync_redis().delete(*(events_key(turn_id) for turn_id in turns))
    except Unavailable:
        # They are gone within ten minutes by themselves.
        return

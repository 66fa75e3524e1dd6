"""Erasing a person: what is theirs goes, what is the team's stays, and what was paid stays without a name.

Suspended first, in a transaction of its own: from then on no key and no session opens anything, and every process ends
what runs for them within a second. Only then, when nothing writes any more, their rows are removed in one transaction.
"""

import logging
import time
from collections import Counter
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.utils import timezone

from app.accounts.inviting import invitations_forget
from app.accounts.models import ApiKey, Team, User
from app.api.models import IdempotencyKey
from app.audit.services import Verb, audit
from app.billing.leaving import words_forget
from app.chat.erasing import collection_erase
from app.chat.event_store import events_key
from app.chat.models import Conversation, Turn, TurnState
from app.chat.sweep import turn_interrupt
from app.common.models import uuid7
from app.common.redis_door import Unavailable, sync_redis
from app.ops.exports import export_remove
from app.ops.models import Export, PersonReceipt
from app.ops.private import personal_teams, principal, private_collections, turns_of
from retrieval.models import Grant

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0
"""How long running answers may take to end once they were told to."""
_COUNTED = {
    "chat.Conversation": "conversations",
    "chat.Turn": "turns",
    "chat.SentPassage": "passages",
    "accounts.ApiKey": "keys",
    "accounts.Membership": "memberships",
    "api.JobWebhook": "webhooks",
}
"""Rows by the name they have in a receipt; any other table goes by its own."""


def person_suspend(*, user: User) -> None:
    """From now on nothing opens for them; what runs is ended by the process it runs in, within a second."""
    User.objects.filter(pk=user.pk).update(is_active=False)
    user.is_active = False
    audit(Verb.SUSPEND, object_kind="person", object_id=user.account_id)


def person_erase(*, user: User, done_by: str, patience: float = PATIENCE_SECONDS) -> PersonReceipt:
    """Suspend somebody, end what runs for them, and erase what is theirs. Returns the receipt.

    Team documents stay with their team. Ledger entries stay and name an account that points at nobody. Safe to begin
    again when it was broken off.
    """
    person_suspend(user=user)
    streams = _streams_end(user, patience)
    private = list(private_collections(user))
    receipts = [collection_erase(collection=collection, done_by=done_by) for collection in private]
    exports = list(Export.objects.filter(user=user).values_list("pk", flat=True))
    turns = list(turns_of(user).values_list("pk", flat=True))
    with transaction.atomic():
        receipt = _erased(user, done_by, receipts=[r.counts for r in receipts], streams=streams)
    # What is outside the database goes when its rows are gone for good.
    _events_forget(turns)
    for export_id in exports:
        export_remove(export_id)
    return receipt


def _erased(user: User, done_by: str, *, receipts: list[dict[str, int]], streams: int) -> PersonReceipt:
    """Remove the rows and write the receipt."""
    counts: Counter[str] = Counter(streams_ended=streams, private_collections=len(receipts))
    for one in receipts:
        counts.update({name: one.get(name, 0) for name in ("documents", "originals")})
    counts["sessions"] = _sessions_end(user)
    counts["idempotency_keys"] = IdempotencyKey.objects.filter(owner__in=_owners(user)).delete()[0]
    counts["notes"] = words_forget(user.account_id)
    counts["invitations"] = invitations_forget(user)
    counts["grants"] = Grant.objects.filter(principal=principal(user)).delete()[0]
    counts["log_names"] = _names_forget(user)
    for rows in (
        Turn.objects.filter(asked_by=user, conversation=None),
        Conversation.objects.filter(owner=user),
    ):
        _count(counts, rows.delete()[1])
    account = user.account_id
    for team in personal_teams(user):
        Team.objects.filter(pk=team.pk).update(name="Erased person", slug=f"erased-{team.pk.hex}")
    # Whatever else hangs on the person goes with them, and is counted under its table's name.
    _count(counts, user.delete()[1])
    identity = uuid7()
    receipt = PersonReceipt.objects.create(
        id=identity,
        number=f"P-{timezone.now():%Y%m%d}-{identity.hex[-10:].upper()}",
        account_id=account,
        counts={name: number for name, number in sorted(counts.items()) if number},
        done_by=done_by,
    )
    audit(Verb.ERASE, object_kind="person", object_id=account, after=receipt.number)
    return receipt


def _streams_end(user: User, patience: float) -> int:
    """Wait until every running answer was ended and booked by its process. Returns how many there were.

    Nobody is told: each process sees by itself that the person is suspended, while the broker is away too, and its
    readers then hear why their answer ends rather than that somebody pressed Stop.
    """
    running = Turn.objects.filter(asked_by=user, state=TurnState.RUNNING)
    found = running.count()
    deadline = time.monotonic() + patience
    while running.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    for turn_id in list(running.values_list("pk", flat=True)):
        # Its process died: ended as the sweeper would.
        turn_interrupt(turn_id)
    return found


def _sessions_end(user: User) -> int:
    """Sessions name their person only inside what they hold, so each is looked at."""
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    gone = [
        row.pk
        for row in model.objects.filter(expire_date__gt=timezone.now()).iterator()
        if row.get_decoded().get("_auth_user_id") == str(user.pk)
    ]
    model.objects.filter(pk__in=gone).delete()
    return len(gone)


def _owners(user: User) -> list[str]:
    keys = ApiKey.objects.filter(user=user).values_list("pk", flat=True)
    return [f"user:{user.pk}", *(f"key:{key}" for key in keys)]


def _names_forget(user: User) -> int:
    """The administration's own log shows things by name; what it did stays, the name does not."""
    objects = {User: [user.pk], Team: [team.pk for team in personal_teams(user)]}
    objects[ApiKey] = list(ApiKey.objects.filter(user=user).values_list("pk", flat=True))
    return sum(
        LogEntry.objects.filter(
            content_type=ContentType.objects.get_for_model(model), object_id__in=[str(pk) for pk in ids]
        ).update(object_repr="erased", change_message="")
        for model, ids in objects.items()
    )


def _count(counts: Counter[str], gone: dict[str, int]) -> None:
    counts.update({_COUNTED.get(label, label): number for label, number in gone.items()})


def _events_forget(turns: list[UUID]) -> None:
    """Replayable events hold the text of answers."""
    for start in range(0, len(turns), 500):
        try:
            sync_redis().delete(*(events_key(turn_id) for turn_id in turns[start : start + 500]))
        except Unavailable:
            log.warning("The broker does not answer: replayable events go by themselves within minutes.")
            return

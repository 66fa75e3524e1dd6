"""Tells webhooks of ledger entries, each at least once, with the entry's own id.

What is to be told was written down with the entry itself (see `sql/entries.sql`); `app.common.delivering` sends it.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import OperationalError, connection

from app.billing.models import Delivery, LedgerEntry, Webhook
from app.billing.outbox_message import messages_of
from app.common import delivering
from app.common.clock import now
from app.common.errors import Busy, InvalidInput
from app.common.outbound import address_check
from app.common.signing import secret_new

ENTRIES = delivering.Outbox(
    Webhook.objects, Delivery.objects, "billing_delivery", "entry_id", "last_entry_id", messages_of
)


def webhook_add(
    *, name: str, url: str, team_id: UUID | None = None, from_start: bool = False
) -> tuple[Webhook, str]:
    """Tell `url` of every entry from now on, or of all there ever were. Returns its secret, which is shown once.

    Errors: InvalidInput, OutboundRefused, Busy (entries are being written that take long).
    """
    if not name.strip():
        raise InvalidInput("A webhook needs a name, for the list of what it did not take.")
    secret = secret_new()
    webhook = Webhook(name=name.strip(), url=address_check(url), team_id=team_id)
    webhook.set_secret(secret)
    webhook.save()
    webhook_open(webhook=webhook, from_start=from_start)
    return webhook, secret


def webhook_open(*, webhook: Webhook, from_start: bool = False) -> None:
    """Begin, or begin again after `webhook_close`. Errors: Busy."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT billing_webhook_open(%s)", [webhook.id])
    except OperationalError as exc:
        raise Busy("Entries are being written that take long; open the webhook again in a moment.") from exc
    webhook.refresh_from_db()
    if from_start:
        rows = LedgerEntry.objects.order_by("id")
        if webhook.team_id:
            rows = rows.filter(team_id=webhook.team_id)
        _deliveries_create(webhook, rows.values_list("id", flat=True).iterator())


def _deliveries_create(webhook: Webhook, entry_ids: Iterable[UUID]) -> None:
    moment = now()
    Delivery.objects.bulk_create(
        (
            Delivery(created_at=moment, webhook=webhook, entry_id=entry_id, state="pending", next_at=moment)
            for entry_id in entry_ids
        ),
        batch_size=1000,
        ignore_conflicts=True,
    )


def webhook_close(*, webhook: Webhook) -> None:
    """Stop telling it. What it has not taken stays and goes on when it is opened again."""
    Webhook.objects.filter(id=webhook.id).update(open=False)


def deliveries_again(*, delivery_ids: Sequence[int] | None = None) -> int:
    """Send dead deliveries again, all of them or some. Returns how many."""
    rows = Delivery.objects.all()
    return delivering.deliveries_again(rows if delivery_ids is None else rows.filter(id__in=delivery_ids))


def outbox_send(*, batches: int = 20) -> int:
    """Send what is due, to every open webhook. Returns how many deliveries were taken."""
    return delivering.deliveries_send(ENTRIES, Webhook.objects.all(), batches=batches)

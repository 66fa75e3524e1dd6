"""Tells webhooks of ledger entries, each at least once, with the entry's own id.

What is to be told was written down with the entry itself (see `sql/entries.sql`). A row goes only when the other side
has said yes, so a crash at any moment means that something is told twice, never not at all.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.db.models import F, Q

from app.billing.models import Delivery, LedgerEntry, Webhook
from app.billing.outbox_message import messages_of
from app.common.clock import now
from app.common.errors import AppError, Busy, InvalidInput
from app.common.outbound import Outbound, address_check, send
from app.common.signing import secret_new, signed_headers

log = logging.getLogger(__name__)

WAITS_S = (10, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 21600)
"""After each try that failed; after the last one the delivery is dead, about 20 hours after the first: receivers
forget the ids they have seen after a day."""
PAUSE_S, LONGEST_PAUSE_S = 5, 1800
BATCH = 50
AT_ONCE = 8
LEASE_S = 120
"""Longer than a whole batch takes when nobody answers."""
TIMEOUT_S = 10.0
_ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A delivery taken for sending."""

    id: int
    entry_id: UUID
    attempts: int
    """This one included."""


@dataclass(frozen=True, slots=True)
class _Told:
    """How one delivery went."""

    delivery: _Claimed
    status: int | None
    error: str

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def away(self) -> bool:
        """The other side takes nothing just now, whatever it is."""
        return self.status is None or self.status >= 500 or self.status == 429


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
    dead = Delivery.objects.filter(state="dead")
    if delivery_ids is not None:
        dead = dead.filter(id__in=delivery_ids)
    return dead.update(state="pending", attempts=0, next_at=now())


def outbox_send(*, batches: int = 20) -> int:
    """Send what is due, to every open webhook. Returns how many deliveries were taken."""
    waiting = Q(paused_until__isnull=True) | Q(paused_until__lte=now())
    taken = 0
    for webhook in Webhook.objects.filter(waiting, open=True).order_by("id"):
        for _ in range(batches):
            claimed = _claim(webhook.id)
            try:
                told = _tell(webhook, claimed)
            except ImproperlyConfigured as exc:
                # Its secret cannot be read now: the other webhooks are told all the same.
                told = [_Told(delivery, None, str(exc)) for delivery in claimed]
            taken += _note(webhook, told)
            if len(claimed) < BATCH or not all(t.taken for t in told):
                break
    return taken


def _claim(webhook_id: UUID) -> list[_Claimed]:
    """Take what is due for one lease; what another process sends is passed over."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE billing_delivery d SET attempts = d.attempts + 1, next_at = %s
            WHERE d.id IN (
              SELECT id FROM billing_delivery WHERE webhook_id = %s AND state = 'pending' AND next_at <= %s
              ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
            RETURNING d.id, d.entry_id, d.attempts
            """,
            [now() + timedelta(seconds=LEASE_S), webhook_id, now(), BATCH],
        )
        return sorted((_Claimed(*row) for row in cursor.fetchall()), key=lambda claimed: claimed.id)


def _tell(webhook: Webhook, claimed: Sequence[_Claimed]) -> list[_Told]:
    bodies = messages_of(c.entry_id for c in claimed)
    secret = webhook.plain_secret

    async def one(delivery: _Claimed, places: asyncio.Semaphore) -> _Told:
        async with places:
            return await _send(webhook.url, secret, delivery, bodies[delivery.entry_id])

    async def everything() -> list[_Told]:
        places = asyncio.Semaphore(AT_ONCE)
        return list(await asyncio.gather(*(one(delivery, places) for delivery in claimed)))

    return async_to_sync(everything)()


async def _send(url: str, secret: str, delivery: _Claimed, body: bytes) -> _Told:
    headers = signed_headers(
        secret=secret, message_id=str(delivery.entry_id), at=int(now().timestamp()), body=body
    )
    request = Outbound(
        url=url, method="POST", headers=headers, body=body, timeout_s=TIMEOUT_S, max_bytes=_ANSWER_BYTES
    )
    try:
        answer = await send(request)
    except AppError as exc:
        return _Told(delivery, None, exc.message)
    return _Told(delivery, answer.status, "" if answer.status < 300 else f"It answered {answer.status}.")


def _note(webhook: Webhook, told: Sequence[_Told]) -> int:
    """Write down how a batch went. Returns how many were taken."""
    taken = [t for t in told if t.taken]
    Delivery.objects.filter(id__in=[t.delivery.id for t in taken]).delete()
    for t in told:
        if not t.taken:
            _note_failure(webhook, t, now())
    if taken:
        Webhook.objects.filter(id=webhook.id).update(
            delivered=F("delivered") + len(taken),
            last_delivered_at=now(),
            last_entry_id=taken[-1].delivery.entry_id,
            failures=0,
            paused_until=None,
        )
    elif told and all(t.away for t in told):
        # The rest waits without using up tries.
        pause = min(PAUSE_S * 2 ** min(webhook.failures, 20), LONGEST_PAUSE_S)
        Webhook.objects.filter(id=webhook.id).update(
            failures=F("failures") + 1, paused_until=now() + timedelta(seconds=pause)
        )
    return len(taken)


def _note_failure(webhook: Webhook, told: _Told, moment: datetime) -> None:
    tries = told.delivery.attempts
    dead = tries > len(WAITS_S)
    wait = WAITS_S[min(tries, len(WAITS_S)) - 1]
    Delivery.objects.filter(id=told.delivery.id).update(
        state="dead" if dead else "pending",
        next_at=moment + timedelta(seconds=wait),
        last_status=told.status,
        last_error=told.error[:300],
    )
    if dead:
        log.error(
            "A ledger entry was not taken by a webhook after all tries",
            extra={"data": {"webhook": webhook.name, "entry": str(told.delivery.entry_id)}},
        )

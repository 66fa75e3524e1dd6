"""Tells webhooks what is laid out for them, each at least once, under the message's own id.

What is to be told was written down with what it tells of. A row goes only when the other side has said yes, so a crash
at any moment means that something is told twice, never not at all.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import F, Manager, Q, QuerySet

from app.common.clock import now
from app.common.errors import AppError
from app.common.outbound import Outbound, send
from app.common.signing import signed_headers

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
class Outbox:
    """Where deliveries of one kind lie, and what their messages say."""

    webhooks: "Manager[Any]"
    deliveries: "Manager[Any]"
    table: str
    """Of the deliveries."""
    message: str
    """The delivery's column with the id of what is told."""
    newest: str
    """The webhook's column with the newest such id that it has taken."""
    bodies: Callable[[Iterable[UUID]], Mapping[UUID, bytes]]
    """The bytes of each message, the same every time."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery taken for sending."""

    id: int
    message_id: UUID
    attempts: int
    """This one included."""


@dataclass(frozen=True, slots=True)
class _Told:
    """How one delivery went."""

    delivery: Claimed
    status: int | None
    error: str

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def away(self) -> bool:
        """The other side takes nothing just now, whatever it is."""
        return self.status is None or self.status >= 500 or self.status == 429


def deliveries_send(outbox: Outbox, webhooks: QuerySet[Any], *, batches: int = 20) -> int:
    """Send what is due to those of `webhooks` that are open. Returns how many deliveries were taken."""
    waiting = Q(paused_until__isnull=True) | Q(paused_until__lte=now())
    taken = 0
    for webhook in webhooks.filter(waiting, open=True).order_by("id"):
        for _ in range(batches):
            claimed = deliveries_claim(outbox, webhook.id)
            try:
                told = _tell(outbox, webhook, claimed)
            except ImproperlyConfigured as exc:
                # Its secret cannot be read now: the other webhooks are told all the same.
                told = [_Told(delivery, None, str(exc)) for delivery in claimed]
            taken += _note(outbox, webhook, told)
            if len(claimed) < BATCH or not all(t.taken for t in told):
                break
    return taken


def deliveries_claim(outbox: Outbox, webhook_id: UUID) -> list[Claimed]:
    """Take what is due for one lease; what another process sends is passed over."""
    table, message = outbox.table, outbox.message
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE {table} d SET attempts = d.attempts + 1, next_at = %s
            WHERE d.id IN (
              SELECT id FROM {table} WHERE webhook_id = %s AND state = 'pending' AND next_at <= %s
              ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
            RETURNING d.id, d.{message}, d.attempts
            """,  # noqa: S608 - both names are ours
            [now() + timedelta(seconds=LEASE_S), webhook_id, now(), BATCH],
        )
        return sorted((Claimed(*row) for row in cursor.fetchall()), key=lambda claimed: claimed.id)


def deliveries_again(deliveries: QuerySet[Any]) -> int:
    """Send those again that were given up. Returns how many."""
    return deliveries.filter(state="dead").update(state="pending", attempts=0, next_at=now())


def _tell(outbox: Outbox, webhook: Any, claimed: Sequence[Claimed]) -> list[_Told]:
    bodies = outbox.bodies(c.message_id for c in claimed)
    secret = webhook.plain_secret

    async def one(delivery: Claimed, places: asyncio.Semaphore) -> _Told:
        async with places:
            return await _send(webhook.url, secret, delivery, bodies[delivery.message_id])

    async def everything() -> list[_Told]:
        places = asyncio.Semaphore(AT_ONCE)
        return list(await asyncio.gather(*(one(delivery, places) for delivery in claimed)))

    return async_to_sync(everything)()


async def _send(url: str, secret: str, delivery: Claimed, body: bytes) -> _Told:
    headers = signed_headers(
        secret=secret, message_id=str(delivery.message_id), at=int(now().timestamp()), body=body
    )
    request = Outbound(
        url=url, method="POST", headers=headers, body=body, timeout_s=TIMEOUT_S, max_bytes=_ANSWER_BYTES
    )
    try:
        answer = await send(request)
    except AppError as exc:
        return _Told(delivery, None, exc.message)
    return _Told(delivery, answer.status, "" if answer.status < 300 else f"It answered {answer.status}.")


def _note(outbox: Outbox, webhook: Any, told: Sequence[_Told]) -> int:
    """Write down how a batch went. Returns how many were taken."""
    taken = [t for t in told if t.taken]
    rows = outbox.deliveries.all()
    rows.filter(id__in=[t.delivery.id for t in taken]).delete()
    for t in told:
        if not t.taken:
            _note_failure(rows, webhook, t, now())
    this = outbox.webhooks.filter(id=webhook.id)
    if taken:
        this.update(
            delivered=F("delivered") + len(taken),
            last_delivered_at=now(),
            failures=0,
            paused_until=None,
            **{outbox.newest: taken[-1].delivery.message_id},
        )
    elif told and all(t.away for t in told):
        # The rest waits without using up tries.
        pause = min(PAUSE_S * 2 ** min(webhook.failures, 20), LONGEST_PAUSE_S)
        this.update(failures=F("failures") + 1, paused_until=now() + timedelta(seconds=pause))
    return len(taken)


def _note_failure(rows: QuerySet[Any], webhook: Any, told: _Told, moment: datetime) -> None:
    tries = told.delivery.attempts
    dead = tries > len(WAITS_S)
    wait = WAITS_S[min(tries, len(WAITS_S)) - 1]
    rows.filter(id=told.delivery.id).update(
        state="dead" if dead else "pending",
        next_at=moment + timedelta(seconds=wait),
        last_status=told.status,
        last_error=told.error[:300],
    )
    if dead:
        log.error(
            "A message was not taken by a webhook after all tries",
            extra={"data": {"webhook": str(webhook.id), "message": str(told.delivery.message_id)}},
        )

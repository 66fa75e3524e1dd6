"""A past for an installation that has none: prices as if set long ago, and calls booked at the times they are given.

Calls go through the same two SQL functions as those of today, with all their limits; what they are spared is the wait
between the two and one for the disk after each. Only `manage.py seed_demo` and benches call this.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from app.billing import pricing
from app.billing.checks import check_rates
from app.billing.models import LedgerEntry, PriceComponent, PriceVersion
from app.billing.types import Attempt, Hold, Rate, Settlement, Side
from app.billing.wire import hold_payload, settlement_payload, written
from app.common.clock import now


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that was made: its hold carries `effective_at`."""

    hold: Hold
    attempts: tuple[Attempt, ...]
    ended_at: datetime


def ledger_is_used() -> bool:
    """Whether any team has paid for more than reading documents: a made-up past has no place beside a real one."""
    return LedgerEntry.objects.filter(call_kind="chat", team_id__isnull=False).exists()


@transaction.atomic
def price_since(*, price_key: str, rates: Sequence[Rate], since: datetime, side: Side = "price") -> None:
    """A first price that has held since a past instant. Errors: InvalidInput; IntegrityError beside another version."""
    check_rates(rates)
    written = pricing.complete(rates)
    version = PriceVersion.objects.create(
        price_key=price_key,
        side=side,
        currency=settings.CURRENCY,
        effective_from=since,
        dearest=[tier.as_json() for tier in pricing.dearest(written)],
        source="seed_demo",
        approved_by="seed_demo",
    )
    PriceComponent.objects.bulk_create(
        PriceComponent(version=version, component=rate.component, per_units=rate.per_units, price=rate.price)
        for rate in written
    )


_BOOK = """
SELECT count(*) FILTER (WHERE booked IS NULL) FROM (
  SELECT CASE WHEN billing_reserve(c -> 'hold') ? 'reservation_id' THEN billing_settle(c -> 'end') END AS booked
  FROM jsonb_array_elements(%s::jsonb) AS c
) x"""


def calls_book(calls: Sequence[PastCall]) -> int:
    """Hold and settle one call after the other, in one statement. Returns how many a limit refused.

    Each is over before the next begins, so a limit refuses what was spent, not what a made-up past held at once.
    """
    # A hold of the past would be overdue at once, and taken for one of a process that died.
    overdue = (now() + timedelta(days=1)).isoformat()
    payloads = [{"hold": _hold(call) | {"expires_at": overdue}, "end": _end(call)} for call in calls]
    with connection.cursor() as cursor:
        cursor.execute(_BOOK, [written(payloads)])
        refused: int = cursor.fetchone()[0]
    return refused


def _hold(call: PastCall) -> dict[str, Any]:
    payload = hold_payload(call.hold, currency=settings.CURRENCY, allow_unlimited=False)
    return payload | {"at": call.hold.effective_at.isoformat() if call.hold.effective_at else None}


def _end(call: PastCall) -> dict[str, Any]:
    payload = settlement_payload(
        Settlement(call.hold.reservation_id, call.attempts), currency=settings.CURRENCY
    )
    at = call.ended_at.isoformat()
    return payload | {"at": at, "attempts": [attempt | {"at": at} for attempt in payload["attempts"]]}

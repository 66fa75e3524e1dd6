"""A past for an installation that has none: prices as if set long ago, and calls booked at the times they are given.

Calls go through the same two SQL functions as those of today, with all their limits; what they are spared is the wait
between the two. Only `manage.py seed_demo` and benches call this.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from app.billing import pricing
from app.billing.checks import check_rates
from app.billing.models import LedgerEntry, PriceComponent, PriceVersion
from app.billing.types import Attempt, Hold, Rate, Settlement, Side
from app.billing.wire import call_each, hold_payload, settlement_payload


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


def calls_book(calls: Sequence[PastCall]) -> int:
    """Hold all of them, then settle those that were admitted: two statements. Returns how many a limit refused."""
    holds: list[dict[str, Any]] = []
    for call in calls:
        payload = hold_payload(call.hold, currency=settings.CURRENCY, allow_unlimited=False)
        holds.append(payload | {"at": call.hold.effective_at.isoformat() if call.hold.effective_at else None})
    answers = call_each("billing_reserve", holds)
    admitted = [c for c, answer in zip(calls, answers, strict=True) if "reservation_id" in answer]
    ends: list[dict[str, Any]] = []
    for call in admitted:
        payload = settlement_payload(
            Settlement(call.hold.reservation_id, call.attempts), currency=settings.CURRENCY
        )
        at = call.ended_at.isoformat()
        payload["attempts"] = [attempt | {"at": at} for attempt in payload["attempts"]]
        ends.append(payload | {"at": at})
    call_each("billing_settle", ends)
    return len(calls) - len(admitted)

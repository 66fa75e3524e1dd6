"""What a server that costs by the hour costs, brings in and does."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection

from app.billing.models import PriceVersion
from app.billing.pricing import for_display
from app.billing.types import HOUR, PROVISIONED
from app.common.clock import now


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One deployment over a time. Money in the installation's currency."""

    deployment_id: UUID
    hours: int
    """Booked: full hours that have ended."""
    provisioned: Decimal
    """What they cost, used or not."""
    recovered: Decimal
    """What was billed for calls to it."""
    tokens: int
    """Input and output of its calls."""
    idle_share: Decimal | None
    """The part of the booked time in which no call ran there, 0 to 1; None: nothing is booked."""
    per_million: Decimal | None
    """Effective price: what a million tokens cost us there, for display; None: there were none."""


def recovery_of(*, deployment_id: UUID, from_: datetime, to: datetime) -> Recovery:
    """Sums over entries with `from_` ≤ effective_at < `to`. Calls that overlap count once for the idle share."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH e AS (
              SELECT * FROM billing_ledgerentry
              WHERE deployment_id = %(deployment)s AND effective_at >= %(from)s AND effective_at < %(to)s
            ), booked AS (
              SELECT count(*) AS hours, coalesce(sum(cost), 0) AS cost,
                range_agg(tstzrange(effective_at, effective_at + interval '1 hour')) AS times
              FROM e WHERE call_kind = 'provisioned'
            ), calls AS (
              SELECT coalesce(sum(price), 0) AS price, coalesce(sum(input_tokens + output_tokens), 0) AS tokens
              FROM e WHERE call_kind <> 'provisioned'
            ), busy AS (
              SELECT range_agg(tstzrange(a.created_at - a.total_ms * interval '1 millisecond', a.created_at)) AS times
              FROM billing_usageattempt a
              WHERE a.deployment_id = %(deployment)s AND a.created_at >= %(from)s AND a.total_ms > 0
                AND a.created_at - a.total_ms * interval '1 millisecond' < %(to)s
            )
            SELECT booked.hours, booked.cost, calls.price, calls.tokens, coalesce((
              SELECT sum(extract(epoch FROM upper(r) - lower(r))) FROM unnest(booked.times * busy.times) r), 0)
            FROM booked, calls, busy
            """,
            {"deployment": deployment_id, "from": from_, "to": to},
        )
        hours, cost, price, tokens, busy = cursor.fetchone()
    return Recovery(
        deployment_id=deployment_id,
        hours=hours,
        provisioned=cost,
        recovered=price,
        tokens=int(tokens),
        idle_share=1 - busy / (hours * 3600) if hours else None,
        per_million=for_display(cost * 1_000_000 / tokens) if tokens else None,
    )


def hourly_costs() -> dict[UUID, tuple[Decimal, str]]:
    """(cost of an hour, its currency) of each deployment that has one now or from the next hour on."""
    rows = PriceVersion.objects.filter(price_key__startswith=PROVISIONED, side="cost").exclude(
        effective_to__lte=now()
    )
    found: dict[UUID, tuple[Decimal, str]] = {}
    for row in rows.order_by("effective_from").prefetch_related("components"):
        (price,) = [c.price for c in row.components.all() if c.component == HOUR]
        found[UUID(row.price_key.removeprefix(PROVISIONED))] = (price, row.currency)
    return found

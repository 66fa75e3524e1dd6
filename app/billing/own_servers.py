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


def idle_share(*, deployment_id: UUID, from_: datetime, to: datetime) -> Decimal | None:
    """The part of the booked hours in which no call ran there, 0 to 1; None: nothing is booked."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*), sum(coalesce(h.seconds, billing_busy_seconds(e.deployment_id, e.effective_at)))
            FROM billing_ledgerentry e
            LEFT JOIN billing_busyhour h ON h.deployment_id = e.deployment_id AND h.at = e.effective_at
            WHERE e.deployment_id = %s AND e.call_kind = 'provisioned' AND e.effective_at >= %s AND e.effective_at < %s
            """,
            [deployment_id, from_, to],
        )
        hours, busy = cursor.fetchone()
    return 1 - busy / (hours * 3600) if hours else None


def recovery_of(*, deployment_id: UUID, from_: datetime, to: datetime) -> Recovery:
    """Sums over entries with `from_` ≤ effective_at < `to`."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*) FILTER (WHERE call_kind = 'provisioned'),
              coalesce(sum(cost) FILTER (WHERE call_kind = 'provisioned'), 0),
              coalesce(sum(price) FILTER (WHERE call_kind <> 'provisioned'), 0),
              coalesce(sum(input_tokens + output_tokens) FILTER (WHERE call_kind <> 'provisioned'), 0)
            FROM billing_ledgerentry
            WHERE deployment_id = %s AND effective_at >= %s AND effective_at < %s
            """,
            [deployment_id, from_, to],
        )
        hours, cost, price, tokens = cursor.fetchone()
    return Recovery(
        deployment_id=deployment_id,
        hours=hours,
        provisioned=cost,
        recovered=price,
        tokens=int(tokens),
        idle_share=idle_share(deployment_id=deployment_id, from_=from_, to=to),
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

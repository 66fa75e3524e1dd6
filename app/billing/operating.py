"""How the books stand at this moment, for whoever watches over the installation. A few indexed reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db import connection

from app.billing.models import Webhook

_QUERY = """
SELECT
  (SELECT count(*) FROM billing_reservation WHERE state = 'held'),
  (SELECT coalesce(extract(epoch FROM now() - min(expires_at)), 0)
     FROM billing_reservation WHERE state = 'held' AND expires_at < now()),
  (SELECT avg(estimated::int) FROM billing_ledgerentry WHERE effective_at > now() - interval '1 hour'),
  (SELECT count(*) FROM billing_ledgerentry WHERE effective_at > now() - interval '1 hour' AND overshoot),
  (SELECT count(*) FROM billing_delivery WHERE state = 'pending'),
  (SELECT count(*) FROM billing_delivery WHERE state = 'dead'),
  (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) FROM billing_delivery WHERE state = 'pending')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksState:
    """Figures of one moment; unknown is None."""

    open: int
    lag_seconds: float
    """How long the hold that is most overdue has been so; the sweeper ends one within half a minute."""
    estimated_share: float | None
    """None: nothing was booked within the last hour."""
    overshoot: int
    outbox: Mapping[str, int]
    outbox_lag_seconds: float


def books_state() -> BooksState:
    """Read it."""
    with connection.cursor() as cursor:
        cursor.execute(_QUERY)
        held, lag, share, over, pending, dead, oldest = cursor.fetchone()
    return BooksState(
        open=held,
        lag_seconds=max(0.0, float(lag)),
        estimated_share=None if share is None else float(share),
        overshoot=over,
        outbox={"pending": pending, "dead": dead},
        outbox_lag_seconds=max(0.0, float(oldest)),
    )


@dataclass(frozen=True, slots=True)
class WebhookPlace:
    """Where ledger entries are sent."""

    name: str
    host: str
    one_team: bool
    """Only one team's entries; else all of the installation."""
    open: bool


def webhook_places() -> list[WebhookPlace]:
    """All webhooks, by name."""
    return [
        WebhookPlace(row.name, urlsplit(row.url).hostname or "", row.team_id is not None, row.open)
        for row in Webhook.objects.order_by("name")
    ]

"""What leaves this installation, read from what is set now."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from app.api.jobs import job_hosts
from app.billing.operating import WebhookPlace, webhook_places
from app.catalog.models import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A model on a server, and what it may see."""

    model: str
    server: str
    host: str
    kind: str
    region: str
    purpose: str
    clearance: str
    """The highest privacy level of content that is sent to it."""
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFlow:
    """Every way out."""

    leaving: tuple[Receiver, ...]
    staying: tuple[Receiver, ...]
    webhooks: tuple[WebhookPlace, ...]
    job_hosts: tuple[str, ...]
    """Whom people and teams tell of their jobs."""
    mail_host: str
    fetch_allow: tuple[str, ...]
    """Private hosts whose pages may be read."""


def data_flow() -> DataFlow:
    """Models that are switched off are listed too: a click switches them on."""
    rows = Deployment.objects.select_related("backend").order_by("backend__name", "public_name")
    leaving = tuple(_receiver(row) for row in rows if row.backend.leaves_premises)
    return DataFlow(
        leaving=leaving,
        staying=tuple(_receiver(row) for row in rows if not row.backend.leaves_premises),
        webhooks=tuple(webhook_places()),
        job_hosts=tuple(job_hosts()),
        mail_host=settings.EMAIL_HOST,
        fetch_allow=tuple(settings.FETCH_ALLOW),
    )


def _receiver(row: Deployment) -> Receiver:
    return Receiver(
        model=row.public_name,
        server=row.backend.name,
        host=urlsplit(row.backend.base_url).hostname or "",
        kind=row.backend.kind,
        region=row.backend.region,
        purpose=row.purpose,
        clearance=row.clearance,
        enabled=row.enabled and row.backend.enabled,
    )

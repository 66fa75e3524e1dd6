"""Writes to servers and their models."""

from typing import Any

from django.db import transaction

from app.catalog.models import Backend, Deployment


@transaction.atomic
def backend_put(
    *, name: str, kind: str, base_url: str, api_key: str = "", leaves_premises: bool = False, region: str = ""
) -> Backend:
    """Add a server, or bring the one of that name up to date (its URL and key change with every embedded start)."""
    row = Backend.objects.filter(name=name).first() or Backend(name=name)
    row.kind, row.base_url, row.leaves_premises, row.region = (
        kind,
        base_url.rstrip("/"),
        leaves_premises,
        region,
    )
    row.set_api_key(api_key)
    row.save()
    return row


def deployment_put(
    *, backend: Backend, upstream_model: str, purpose: str, **fields: Any
) -> tuple[Deployment, bool]:
    """Add a model of a server; an existing one keeps what an administrator changed. Returns (row, created)."""
    return Deployment.objects.get_or_create(
        backend=backend, upstream_model=upstream_model, purpose=purpose, defaults=fields
    )

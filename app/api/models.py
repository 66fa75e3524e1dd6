"""What a repeated POST is recognised by."""

from django.db import models

from app.common.models import BaseModel


class IdempotencyKey(BaseModel):
    """One key of one owner, what came with it, and what came of it. Kept 24 hours."""

    owner = models.CharField(max_length=64)
    """`user:<id>` or `key:<id>`: two programs of one person do not share keys."""
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    """SHA-256 of method, path and body."""
    status = models.PositiveSmallIntegerField(null=True)
    """HTTP status of the answer; null while the first request runs."""
    response = models.JSONField(null=True)
    resource_id = models.UUIDField(null=True)
    """What the request makes, when its id is known before its answer (a turn)."""

    class Meta:
        constraints = (models.UniqueConstraint(fields=["owner", "key"], name="idempotency_key_once"),)
        indexes = (models.Index(fields=["created_at"]),)

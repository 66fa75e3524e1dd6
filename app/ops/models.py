"""Rows about leaving: an export on its way to the person it is about, and the receipt of an erasure."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from app.common.models import BaseModel


class Export(BaseModel):
    """A file with everything of one person, made in the background and kept for a week."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        READY = "ready"
        FAILED = "failed"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    size = models.PositiveBigIntegerField(null=True)
    """Bytes, once it is ready."""
    counts = models.JSONField(default=dict)
    collections = ArrayField(models.UUIDField(), default=list, db_default=[])
    """Of which it holds text."""
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=["user", "-id"], name="ops_export_user"),)

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"


class PersonReceipt(BaseModel):
    """That a person was erased: when, by whom, and how much of each kind went. Nothing says who it was."""

    number = models.CharField(max_length=32, unique=True)
    account_id = models.UUIDField()
    """What the ledger goes on calling them; it points at nobody now."""
    counts = models.JSONField()
    done_by = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.number

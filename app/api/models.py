"""What a repeated POST is recognised by, and who is told of jobs that have ended."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from app.accounts.models import Team
from app.common.models import BaseModel
from app.common.webhooks import DeliveryBase, WebhookBase


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


class JobEvent(models.TextChoices):
    """What a webhook of jobs can hear of. `sql/jobs.sql` makes the first six."""

    DOCUMENT_READY = "document.ready"
    DOCUMENT_FAILED = "document.failed"
    TURN_FINISHED = "turn.finished"
    TURN_FAILED = "turn.failed"
    EXPORT_READY = "export.ready"
    EXPORT_FAILED = "export.failed"


class JobWebhook(WebhookBase):
    """An address that hears when jobs end: those of one person, or those of a team that are no person's."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="+")
    events = ArrayField(models.CharField(max_length=30, choices=JobEvent))
    last_event_id = models.UUIDField(null=True)
    """Newest event it has taken."""

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(user=None, team__isnull=False) | Q(user__isnull=False, team=None),
                name="api_job_webhook_one_owner",
            ),
        )


class JobDelivery(DeliveryBase):
    """An event that a webhook has not taken yet. It holds ids and states, never content."""

    # Without a constraint: the end of a turn must not fail because a webhook is removed at that moment.
    webhook = models.ForeignKey(
        JobWebhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False, db_constraint=False
    )
    event_id = models.UUIDField()
    """The same for every webhook that hears of it."""
    type = models.CharField(max_length=30)
    data = models.JSONField()

    class Meta:
        verbose_name_plural = "job deliveries"
        indexes = (
            models.Index(fields=["webhook", "id"], name="api_job_due", condition=Q(state="pending")),
            models.Index(fields=["event_id"], name="api_job_event"),
        )
        constraints = (
            models.CheckConstraint(condition=Q(state__in=["pending", "dead"]), name="api_job_state"),
        )

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook_id}"

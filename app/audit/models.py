"""The audit log: who did what to which thing, and when. Rows are only added, and none holds content."""

from django.db import models

from app.common.models import BaseModel


class Verb(models.TextChoices):
    """The closed list of what is written down."""

    SIGN_IN = "sign_in"
    KEY_MADE = "key_made"
    KEY_REVOKED = "key_revoked"
    WEBHOOK_MADE = "webhook_made"
    WEBHOOK_ENDED = "webhook_ended"
    BUDGET_CHANGED = "budget_changed"
    PRICE_APPROVED = "price_approved"
    GRANT_CHANGED = "grant_changed"
    ROLE_CHANGED = "role_changed"
    BREAK_GLASS = "break_glass"
    PERSON_LEVEL_VIEW = "person_level_view"
    EXPORT = "export"
    ERASE = "erase"
    BACKUP = "backup"
    RESTORE = "restore"
    SUSPEND = "suspend"
    SERVER_ADDED = "server_added"
    SERVER_CHANGED = "server_changed"
    RETENTION_CHANGED = "retention_changed"


class Outcome(models.TextChoices):
    OK = "ok"
    REFUSED = "refused"


class AuditEntry(BaseModel):
    """One act. People are named by their opaque account, so that the log outlives them."""

    verb = models.CharField(max_length=24, choices=Verb)
    outcome = models.CharField(max_length=8, choices=Outcome, default=Outcome.OK)
    actor_account = models.UUIDField(null=True)
    """Null: a team's key, a stranger, or the installation itself."""
    actor_key = models.UUIDField(null=True)
    team_id = models.UUIDField(null=True)
    object_kind = models.CharField(max_length=40, blank=True)
    object_id = models.CharField(max_length=100, blank=True)
    before = models.CharField(max_length=200, blank=True)
    """What a setting was: a role, an amount, an address. Never what somebody wrote."""
    after = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    """Given by the actor where an act needs one."""
    request_id = models.CharField(max_length=36, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["verb", "-id"], name="audit_verb"),
            models.Index(fields=["actor_account", "-id"], name="audit_actor"),
            models.Index(fields=["team_id", "-id"], name="audit_team"),
            models.Index(fields=["object_id", "-id"], name="audit_object"),
        )

    def __str__(self) -> str:
        return f"{self.verb} {self.object_kind} {self.object_id}".strip()

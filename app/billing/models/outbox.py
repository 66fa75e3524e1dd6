"""Who is told of ledger entries, and what has not been told yet."""

from django.db import models
from django.db.models import Q

from app.billing.models.budgets import HOT
from app.billing.models.ledger import LedgerEntry
from app.common.crypto import decrypt, encrypt
from app.common.models import BaseModel


class Webhook(BaseModel):
    """An address that every ledger entry is sent to, at least once."""

    name = models.CharField(max_length=100)
    url = models.CharField(max_length=500)
    secret = models.TextField(editable=False)
    """What its messages are signed with, encrypted."""
    team_id = models.UUIDField(null=True, blank=True)
    """Only this team's entries; null: all of the installation."""
    open = models.BooleanField(default=False)
    """Opened by `billing_webhook_open` alone, which waits for entries being written; closed at any time."""
    paused_until = models.DateTimeField(null=True)
    """It did not take the last messages, so it is left in peace until then."""
    failures = models.PositiveIntegerField(default=0)
    """Batches in a row of which it took nothing."""
    delivered = models.PositiveBigIntegerField(default=0)
    last_delivered_at = models.DateTimeField(null=True)
    last_entry_id = models.UUIDField(null=True)
    """Newest entry it has taken."""

    def __str__(self) -> str:
        return self.name

    @property
    def plain_secret(self) -> str:
        """Never shown again, never logged."""
        return decrypt(self.secret)

    def set_secret(self, value: str) -> None:
        """Keep `value` encrypted; the caller saves."""
        self.secret = encrypt(value)


class Delivery(models.Model):
    """An entry that a webhook has not taken yet. Written by a trigger in the entry's own transaction, so none can be
    missing; removed when the webhook says yes.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField()
    webhook = models.ForeignKey(Webhook, related_name="deliveries", db_index=False, **HOT)
    entry = models.ForeignKey(LedgerEntry, related_name="deliveries", db_index=False, **HOT)
    state = models.CharField(max_length=10)
    """pending; dead: given up after the last try, until somebody sends it again."""
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    next_at = models.DateTimeField()
    """Not before; while it is being sent, the end of the lease."""
    last_status = models.PositiveIntegerField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = (
            models.Index(fields=["webhook", "id"], name="billing_delivery_due", condition=Q(state="pending")),
        )
        constraints = (
            models.UniqueConstraint(fields=["entry", "webhook"], name="billing_delivery_once"),
            models.CheckConstraint(condition=Q(state__in=["pending", "dead"]), name="billing_delivery_state"),
        )

    def __str__(self) -> str:
        return f"{self.entry_id} to {self.webhook_id}"

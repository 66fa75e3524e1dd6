"""Who is told of ledger entries, and what has not been told yet."""

from django.db import models
from django.db.models import Q

from app.billing.models.budgets import HOT
from app.billing.models.ledger import LedgerEntry
from app.common.webhooks import DeliveryBase, WebhookBase


class Webhook(WebhookBase):
    """An address that every ledger entry is sent to, at least once.

    Opened by `billing_webhook_open` alone, which waits for entries being written; closed at any time.
    """

    team_id = models.UUIDField(null=True, blank=True)
    """Only this team's entries; null: all of the installation."""
    last_entry_id = models.UUIDField(null=True)
    """Newest entry it has taken."""


class Delivery(DeliveryBase):
    """An entry that a webhook has not taken yet."""

    webhook = models.ForeignKey(Webhook, related_name="deliveries", db_index=False, **HOT)
    entry = models.ForeignKey(LedgerEntry, related_name="deliveries", db_index=False, **HOT)

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

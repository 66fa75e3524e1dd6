"""Prepaid credit: what a team was given, what was corrected and what lapsed. Rows are added, never changed."""

from django.db import models
from django.db.models import Q

from app.billing.models.budgets import AMOUNT, HOT


class CreditMovement(models.Model):
    """One movement of a team's prepaid credit; each stands in the ledger too, as an entry with `credit`.

    A team with movements has one budget of scope `prepaid`, whose limit is their sum: what is left is that less
    what is spent and held. Ids ascend in the order of writing, which decides what was spent from which grant.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField()
    team_id = models.UUIDField()
    kind = models.CharField(max_length=10)
    """grant, correction or expiry."""
    grant = models.ForeignKey("self", null=True, related_name="movements", db_index=False, **HOT)
    """The grant that is corrected or lapses."""
    amount = models.DecimalField(**AMOUNT)
    """Signed; what lapses is negative."""
    currency = models.CharField(max_length=3)
    expires_at = models.DateTimeField(null=True)
    """Of a grant: what is unspent then lapses. Null: never."""
    spent_before = models.DecimalField(**AMOUNT)
    """What the team had spent of its credit when this was written: later spending alone can use a later grant."""
    source = models.CharField(max_length=200, blank=True)
    """Where the money came from, such as an invoice's number or `promotion`."""
    reason = models.CharField(max_length=400, blank=True)
    actor = models.CharField(max_length=200)
    dedupe_key = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["dedupe_key"], name="billing_credit_once"),
            models.CheckConstraint(
                condition=Q(kind="grant", amount__gt=0, grant__isnull=True)
                | Q(kind="correction", grant__isnull=False, expires_at__isnull=True)
                | Q(kind="expiry", amount__lt=0, grant__isnull=False, expires_at__isnull=True),
                name="billing_credit_kind",
            ),
            # NaN compares greater than every number in PostgreSQL: the upper bound refuses it.
            models.CheckConstraint(
                condition=Q(amount__gt=-(10**13), amount__lt=10**13), name="billing_credit_range"
            ),
        )
        indexes = (models.Index(fields=["team_id", "id"], name="billing_credit_team"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} {self.currency}"

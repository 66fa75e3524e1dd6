"""The ledger: rows are added, never changed. Triggers refuse UPDATE, DELETE and TRUNCATE, and the application's
role has no grant for them either, because a row trigger alone would not stop a TRUNCATE.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from app.billing.models.budgets import AMOUNT, HOT
from app.billing.models.prices import PriceVersion
from app.billing.models.rates import ExchangeRate, TeamRate
from app.billing.models.reservations import Reservation, UsageAttempt


class LedgerEntry(models.Model):
    """One booking with both its amounts: the price the payer owes and the cost we owe. Null is unknown, not 0.

    Owners are plain ids without a foreign key, so the entry outlives the person, the chat and the team.
    """

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=10)
    """charge, adjust, refund, grant, expiry, write_off."""
    dedupe_key = models.CharField(max_length=200)
    effective_at = models.DateTimeField()
    """Copied from the reservation, never the time of writing."""
    recorded_at = models.DateTimeField()
    currency = models.CharField(max_length=3)
    price = models.DecimalField(**AMOUNT, null=True)
    cost = models.DecimalField(**AMOUNT, null=True)
    """In `currency` like the price; null also where a cost in another currency had no exchange rate."""
    cost_native = models.DecimalField(**AMOUNT, null=True)
    """The exact sum of cost lines in another currency; `cost` is it at `exchange_rate`, half-even."""
    cost_currency = models.CharField(max_length=3, default="", db_default="")
    """Set where `cost_native` is."""
    credit = models.DecimalField(**AMOUNT, null=True)
    """A movement of prepaid credit, signed; such an entry is nobody's use, and its price is 0."""
    price_missing = models.BooleanField()
    """At least one component has no known price; `price` then sums the known ones."""
    reservation = models.ForeignKey(Reservation, null=True, related_name="entries", **HOT)
    attempt = models.ForeignKey(UsageAttempt, null=True, related_name="entries", db_index=False, **HOT)
    price_version = models.ForeignKey(PriceVersion, null=True, related_name="+", db_index=False, **HOT)
    cost_version = models.ForeignKey(PriceVersion, null=True, related_name="+", db_index=False, **HOT)
    team_rate = models.ForeignKey(TeamRate, null=True, related_name="+", db_index=False, **HOT)
    """The mark-up on `price_version`, when it was not the team's own."""
    exchange_rate = models.ForeignKey(ExchangeRate, null=True, related_name="+", db_index=False, **HOT)
    team_id = models.UUIDField(null=True)
    account_id = models.UUIDField(null=True)
    key_id = models.UUIDField(null=True)
    deployment_id = models.UUIDField(null=True)
    call_kind = models.CharField(max_length=20, blank=True)
    price_key = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    """As the caller named it, else as the server did, else the price key."""
    cost_centre = models.CharField(max_length=60, blank=True, default="", db_default="")
    """Of the key, else of the team, as it was when this was booked; a trigger fills it in."""
    collections = ArrayField(models.UUIDField(), null=True)
    """Those the call drew on or was made for, opaque and in order; a trigger copies it from the reservation."""
    thread_id = models.UUIDField(null=True)
    """What belongs together for the caller, such as a conversation; copied likewise."""
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    estimated = models.BooleanField()
    overshoot = models.BooleanField()
    late = models.BooleanField()
    recreated = models.BooleanField()
    supersedes = models.ForeignKey("self", null=True, related_name="superseded_by", db_index=False, **HOT)
    actor = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=400, blank=True)

    class Meta:
        indexes = (
            models.Index(fields=["effective_at"], name="billing_entry_time"),
            models.Index(fields=["team_id", "effective_at"], name="billing_entry_team"),
            models.Index(fields=["account_id", "effective_at"], name="billing_entry_account"),
            models.Index(
                fields=["key_id", "effective_at"], condition=Q(key_id__isnull=False), name="billing_entry_key"
            ),
            models.Index(
                fields=["thread_id", "effective_at"],
                condition=Q(thread_id__isnull=False),
                name="billing_entry_thread",
            ),
            models.Index(
                fields=["deployment_id", "effective_at"],
                condition=Q(call_kind="provisioned"),
                name="billing_entry_hours",
            ),
            models.Index(
                fields=["effective_at"],
                condition=Q(estimated=True) | Q(price_missing=True) | Q(overshoot=True) | Q(late=True),
                name="billing_entry_marked",
            ),
        )
        constraints = (
            models.UniqueConstraint(fields=["dedupe_key"], name="billing_entry_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["charge", "adjust", "refund", "grant", "expiry", "write_off"]),
                name="billing_entry_kind",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.price} {self.currency} {self.dedupe_key}"


class LedgerLine(models.Model):
    """One component of an entry: quantity × unit price = amount, exact to the last of 15 decimals."""

    id = models.BigAutoField(primary_key=True)
    entry = models.ForeignKey(LedgerEntry, related_name="lines", db_index=False, **HOT)
    side = models.CharField(max_length=5)
    component = models.CharField(max_length=40)
    quantity = models.BigIntegerField()
    unit_price = models.DecimalField(max_digits=18, decimal_places=9, null=True)
    per_units = models.PositiveIntegerField(null=True)
    min_prompt_tokens = models.PositiveBigIntegerField(null=True)
    """The tier that was hit."""
    amount = models.DecimalField(**AMOUNT, null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["entry", "side", "component", "min_prompt_tokens"], name="billing_ledger_line_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.side} {self.component} {self.quantity}"

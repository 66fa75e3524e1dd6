"""Monthly statements: drafted when the month is over, issued when the grace is over, never edited then."""

from django.db import models
from django.db.models import Q

from app.billing.models.budgets import AMOUNT, HOT
from app.billing.models.ledger import LedgerEntry
from app.billing.models.prices import PriceVersion
from app.common.models import BaseModel


class Statement(BaseModel):
    """What one team used in one month of the installation's zone. A draft has no lines yet: it is computed when shown.

    Triggers refuse every change of an issued one; what becomes known later stands in the next.
    """

    team_id = models.UUIDField(null=True)
    """The payer; null: the installation itself."""
    team_name = models.CharField(max_length=200)
    """As it was when this was drafted."""
    month = models.DateField()
    """Its first day."""
    zone = models.CharField(max_length=60)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    """UTC instants of that month in that zone, [starts_at, ends_at)."""
    currency = models.CharField(max_length=3)
    places = models.PositiveIntegerField()
    """Decimals of the currency that lines are rounded to."""
    state = models.CharField(max_length=10, default="draft")
    number = models.PositiveIntegerField(null=True, unique=True)
    """1, 2, 3… over the whole installation, without gaps; given when it is issued."""
    issued_at = models.DateTimeField(null=True)
    issued_by = models.CharField(max_length=200, blank=True)
    exact = models.DecimalField(**AMOUNT, null=True)
    """The unrounded sum of its entries."""
    total = models.DecimalField(**AMOUNT, null=True)
    """`exact` rounded once; its lines and the rounding line add up to it."""
    credit_opening = models.DecimalField(**AMOUNT, null=True)
    credit_used = models.DecimalField(**AMOUNT, null=True)
    """The part of `exact` that prepaid credit paid."""
    missing = models.PositiveIntegerField(null=True)
    """Entries without a known price, which are in no sum."""

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["team_id", "month"], name="billing_statement_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(state="draft", number__isnull=True, issued_at__isnull=True)
                | Q(state="issued", number__isnull=False, issued_at__isnull=False, total__isnull=False),
                name="billing_statement_state",
            ),
        )

    def __str__(self) -> str:
        return f"{self.team_name} {self.month:%Y-%m}"


class StatementLine(models.Model):
    """Model × component × price version × quantity of an issued statement, rounded once."""

    id = models.BigAutoField(primary_key=True)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    position = models.PositiveIntegerField()
    section = models.CharField(max_length=12)
    """charge, adjustment (of an earlier month), credit (movements of prepaid credit) or rounding."""
    month = models.DateField(null=True)
    """Of an adjustment: the month it is about."""
    cost_centre = models.CharField(max_length=60, blank=True)
    model = models.CharField(max_length=200, blank=True)
    component = models.CharField(max_length=400, blank=True)
    """Of credit: what moved, and why."""
    price_version = models.ForeignKey(PriceVersion, null=True, related_name="+", db_index=False, **HOT)
    quantity = models.BigIntegerField(null=True)
    unit_price = models.DecimalField(max_digits=18, decimal_places=9, null=True)
    per_units = models.PositiveIntegerField(null=True)
    min_prompt_tokens = models.PositiveBigIntegerField(null=True)
    exact = models.DecimalField(**AMOUNT, null=True)
    """Null: the price is not known."""
    estimated = models.DecimalField(**AMOUNT, null=True)
    """The part of `exact` that rests on estimates."""
    amount = models.DecimalField(**AMOUNT, null=True)
    """`exact` rounded half to even."""
    entries = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["statement", "position"], name="billing_statement_line_once"),
            models.CheckConstraint(
                condition=Q(section__in=["charge", "adjustment", "credit", "rounding"]),
                name="billing_statement_section",
            ),
        )

    def __str__(self) -> str:
        return f"{self.section} {self.model} {self.component}"


class StatementEntry(models.Model):
    """Which statement an entry stands in: each in one, by its key."""

    entry = models.OneToOneField(LedgerEntry, primary_key=True, related_name="statement_entry", **HOT)
    statement = models.ForeignKey(Statement, related_name="statement_entries", **HOT)

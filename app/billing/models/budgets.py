"""Limits and the windows they are counted in."""

from typing import Any

from django.db import models
from django.db.models import Q

from app.common.models import BaseModel

AMOUNT: dict[str, Any] = {"max_digits": 28, "decimal_places": 15}

# A foreign key in the database would lock one hot parent row (a price, a window) for each call, so the rows that the
# SQL functions write have none; `ledger_verify` looks for orphans instead.
HOT: dict[str, Any] = {"on_delete": models.PROTECT, "db_constraint": False}


class Budget(BaseModel):
    """A limit. A row means a limit and 0 means nothing; no limit is no row.

    `subject` names whom it covers: `i`, `t:<team>`, `c:<team>` (prepaid credit, whose limit its window alone carries),
    `a:<team>:<account>`, `p:<account>`, `k:<key>`. A `*` for an id makes it the default of everyone without a row
    of that scope, unit and model.
    """

    scope = models.CharField(max_length=12)
    subject = models.CharField(max_length=80)
    name = models.CharField(max_length=200, blank=True)
    """For people: what a refusal calls this limit."""
    unit = models.CharField(max_length=10)
    limit = models.DecimalField(**AMOUNT)
    price_key = models.CharField(max_length=200, blank=True, default="")
    """Counts only this model; empty: all."""
    period = models.CharField(max_length=10)
    zone = models.CharField(max_length=60, default="UTC")
    """IANA name; days, weeks (from Monday) and months begin at its midnight."""
    hard = models.BooleanField(default=True)
    alert_ratios = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    """False: no longer checked; its windows stay, because reservations name them."""
    set_by = models.CharField(max_length=200, blank=True)
    ceiling = models.DecimalField(**AMOUNT, null=True, blank=True)
    """What staff granted: the team's own owner goes no higher. Null: nothing was said."""

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["subject", "unit", "price_key", "period"],
                condition=Q(active=True),
                name="billing_budget_once",
            ),
            models.CheckConstraint(
                condition=Q(scope__in=["installation", "team", "prepaid", "allowance", "person", "key"]),
                name="billing_budget_scope",
            ),
            models.CheckConstraint(
                condition=Q(unit__in=["money", "tokens", "requests", "bytes", "pages"]),
                name="billing_budget_unit",
            ),
            models.CheckConstraint(
                condition=Q(period__in=["day", "week", "month", "lifetime"]), name="billing_budget_period"
            ),
            # What is stored is there or not; it does not begin anew at midnight.
            models.CheckConstraint(
                condition=~Q(unit__in=["bytes", "pages"]) | Q(period="lifetime", price_key=""),
                name="billing_budget_stored",
            ),
            # NaN compares greater than every number in PostgreSQL: the upper bound refuses it.
            models.CheckConstraint(condition=Q(limit__gte=0, limit__lt=10**13), name="billing_budget_limit"),
        )

    def __str__(self) -> str:
        return f"{self.name or self.subject}: {self.limit.normalize():f} {self.unit} a {self.period}"


class BudgetWindow(BaseModel):
    """One budget, one subject, one period, between two UTC instants.

    Made by the first call that needs it, so no reset job exists that could fail. `spent` and `held` are a cache of
    the reservation lines folded so far: lines that have ended are folded, under the window's lock, by a later hold
    that needs the room they give back or that must know of more than was held.
    """

    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="windows")
    subject = models.CharField(max_length=80)
    """Whom it counts, without `*`."""
    unit = models.CharField(max_length=10)
    price_key = models.CharField(max_length=200, blank=True, default="")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    limit_snapshot = models.DecimalField(**AMOUNT)
    """The limit in force in this window, with what was added for this window alone."""
    raised = models.DecimalField(**AMOUNT, default=0, db_default=0)
    """That part of it: it ends with the window."""
    spent = models.DecimalField(**AMOUNT, default=0, db_default=0)
    held = models.DecimalField(**AMOUNT, default=0, db_default=0)
    review_at = models.DateTimeField(null=True)
    """Of prepaid credit: when a grant lapses next; the first hold after that takes back what is unspent."""

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["budget", "subject", "starts_at"], name="billing_window_once"),
            models.CheckConstraint(
                condition=Q(ends_at__gt=models.F("starts_at")), name="billing_window_order"
            ),
        )
        indexes = (models.Index(fields=["subject", "ends_at"], name="billing_window_subject"),)

    def __str__(self) -> str:
        return f"{self.subject} {self.unit} from {self.starts_at:%Y-%m-%d %H:%M}"

"""What people do about a limit: they are told of it, ask for more, and staff may pause all spending."""

from django.db import models
from django.db.models import Q

from app.billing.models.budgets import AMOUNT, HOT, BudgetWindow
from app.common.models import BaseModel


class Telling(BaseModel):
    """Something to be told by mail and webhook, once each."""

    told_at = models.DateTimeField(null=True, blank=True)
    """Null: still to be sent."""
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    told = models.JSONField(default=list, db_default=[])
    """Who has had it: `mail`, ids of webhooks."""
    left = models.JSONField(default=list, db_default=[])
    """Webhooks that did not take it yet."""

    class Meta:
        abstract = True


class BudgetAlert(Telling):
    """A threshold that was passed in a window. What is unique makes the message come once, and once more where the
    limit was raised and the threshold passed again."""

    window = models.ForeignKey(BudgetWindow, related_name="alerts", **HOT)
    ratio = models.DecimalField(max_digits=6, decimal_places=4)
    """0.8 is 80 %."""
    used = models.DecimalField(**AMOUNT)
    """When it was noticed, as the limit then stood."""
    limit = models.DecimalField(**AMOUNT)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["window", "ratio", "limit"], name="billing_alert_once"),
        )
        indexes = (
            models.Index(fields=["created_at"], condition=Q(told_at=None), name="billing_alert_to_tell"),
        )

    def __str__(self) -> str:
        return f"{self.ratio * 100:.0f} % of {self.window_id}"


class OvershootAlert(Telling):
    """Calls of one team that used more than was held, in one hour. The unique pair makes the message come once."""

    team_id = models.UUIDField(null=True)
    """Null: the installation paid."""
    hour = models.DateTimeField()
    """Its beginning, UTC."""
    calls = models.PositiveIntegerField()
    """When it was noticed; later ones of the hour are in the ledger."""
    reservation_id = models.UUIDField()
    """The first of them, whose figures follow."""
    price_key = models.CharField(max_length=200)
    held_tokens = models.BigIntegerField()
    used_tokens = models.BigIntegerField()
    held_price = models.DecimalField(**AMOUNT, null=True)
    price = models.DecimalField(**AMOUNT, null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["team_id", "hour"], nulls_distinct=False, name="billing_overshoot_once"
            ),
        )
        indexes = (
            models.Index(fields=["created_at"], condition=Q(told_at=None), name="billing_overshoot_to_tell"),
        )

    def __str__(self) -> str:
        return f"{self.calls} of {self.team_id or 'the installation'} in the hour from {self.hour:%Y-%m-%d %H:%M}"


class LimitRequest(BaseModel):
    """Somebody asks for more room in one window. Granted, the window is raised and the raise ends with it."""

    class State(models.TextChoices):
        """How it stands; one that is open when its window ends is moot."""

        OPEN = "open"
        GRANTED = "granted"
        DECLINED = "declined"

    window = models.ForeignKey(BudgetWindow, related_name="requests", **HOT)
    team_id = models.UUIDField(null=True)
    """The payer of the call that was refused."""
    account_id = models.UUIDField(null=True)
    key_id = models.UUIDField(null=True)
    amount = models.DecimalField(**AMOUNT, null=True, blank=True)
    """How much more; null leaves it to who decides."""
    note = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=10, default=State.OPEN, choices=State)
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    granted = models.DecimalField(**AMOUNT, null=True, blank=True)
    """How much more it got."""
    answer = models.CharField(max_length=500, blank=True, default="", db_default="")
    """A word of who decided."""

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(amount__isnull=True) | Q(amount__gt=0, amount__lt=10**13),
                name="billing_request_amount",
            ),
            models.UniqueConstraint(
                fields=["window", "account_id", "key_id"],
                condition=Q(state="open"),
                nulls_distinct=False,
                name="billing_request_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount or 'more'} for {self.window_id}: {self.state}"


class Pause(BaseModel):
    """One turn of the switch that pauses everything that costs money. The last row is how it stands; none: running.

    Rows are only added, so they are the switch's own audit.
    """

    paused = models.BooleanField()
    reason = models.CharField(max_length=400, blank=True)
    set_by = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"{'paused' if self.paused else 'running'} by {self.set_by}"

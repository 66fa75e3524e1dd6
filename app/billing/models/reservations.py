"""Holds and the upstream calls made under them. Written by `billing_reserve` and `billing_settle` alone."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from app.billing.models.budgets import AMOUNT, HOT, BudgetWindow
from app.billing.models.prices import PriceVersion


class Reservation(models.Model):
    """What a call may cost at most, taken before it is sent. It ends once: settled, released or expired.

    A charge that arrives after `expired` leaves the state and sets `late`.
    """

    id = models.UUIDField(primary_key=True)
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10)
    kind = models.CharField(max_length=20)
    team_id = models.UUIDField(null=True)
    """The payer; null: the installation."""
    account_id = models.UUIDField(null=True)
    key_id = models.UUIDField(null=True)
    deployment_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    thread_id = models.UUIDField(null=True)
    """What belongs together for the caller, such as a conversation; opaque."""
    collections = ArrayField(models.UUIDField(), null=True)
    """Those the call may draw on, opaque and in order."""
    request_id = models.CharField(max_length=100, blank=True, default="")
    dedupe_key = models.CharField(max_length=200, blank=True, default="")
    fingerprint = models.CharField(max_length=100, blank=True, default="")
    price_key = models.CharField(max_length=200)
    mode = models.CharField(max_length=20, default="standard")
    price_version = models.ForeignKey(PriceVersion, null=True, related_name="+", db_index=False, **HOT)
    pins = models.JSONField(default=dict)
    """Versions in force at the hold, `{price_key: {price, cost, rate}}`: a later change does not touch it. `rate` is
    the team's mark-up."""
    currency = models.CharField(max_length=3)
    held_input_tokens = models.BigIntegerField()
    held_output_tokens = models.BigIntegerField()
    """The granted cap."""
    asked_output_tokens = models.BigIntegerField()
    held_price = models.DecimalField(**AMOUNT, null=True)
    effective_at = models.DateTimeField()
    """When the call counts, also if it ends after midnight."""
    heartbeat_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    seen_input_tokens = models.BigIntegerField(default=0, db_default=0)
    seen_output_tokens = models.BigIntegerField(default=0, db_default=0)
    """Checkpoints of the heartbeat: what the sweeper bills when the process dies."""
    ended_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    price = models.DecimalField(**AMOUNT, null=True)
    cost = models.DecimalField(**AMOUNT, null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    settled_by = models.CharField(max_length=20, blank=True, default="")
    """caller or sweeper."""
    estimated = models.BooleanField(default=False, db_default=False)
    price_missing = models.BooleanField(default=False, db_default=False)
    overshoot = models.BooleanField(default=False, db_default=False)
    late = models.BooleanField(default=False, db_default=False)
    recreated = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=["held", "settled", "released", "expired"]),
                name="billing_reservation_state",
            ),
            models.UniqueConstraint(
                fields=["team_id", "dedupe_key"],
                condition=~Q(dedupe_key=""),
                name="billing_reservation_dedupe",
            ),
        )
        indexes = (
            models.Index(fields=["expires_at"], condition=Q(state="held"), name="billing_reservation_due"),
            models.Index(
                fields=["id"],
                condition=Q(state="expired", settled_at__isnull=True),
                name="billing_reservation_owed",
            ),
            models.Index(fields=["settled_at"], condition=Q(overshoot=True), name="billing_reservation_over"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id} {self.state}"


class LineState(models.IntegerChoices):
    """held → ended → folded. An ended line waits for the next reserve on its window."""

    HELD = 0
    ENDED = 1
    FOLDED = 2


class ReservationLine(models.Model):
    """A reservation's part of one window. Truth that comes late adds a line of amount 0; none is reused."""

    id = models.BigAutoField(primary_key=True)
    reservation = models.ForeignKey(Reservation, related_name="lines", **HOT)
    window = models.ForeignKey(BudgetWindow, related_name="lines", db_index=False, **HOT)
    unit = models.CharField(max_length=10)
    price_key = models.CharField(max_length=200, blank=True, default="")
    """Copies from the window, so that settling never touches the window's row."""
    amount = models.DecimalField(**AMOUNT)
    spent = models.DecimalField(**AMOUNT, default=0, db_default=0)
    state = models.SmallIntegerField(default=LineState.HELD, db_default=0, choices=LineState)

    class Meta:
        indexes = (
            models.Index(fields=["window"], condition=Q(state=1), name="billing_line_to_fold"),
            # Almost always empty: lines that spent more than they hold, which no hold may overlook.
            models.Index(
                fields=["window"],
                condition=Q(state=1, spent__gt=models.F("amount")),
                name="billing_line_overshot",
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount} {self.unit} of {self.window_id}"


class UsageAttempt(models.Model):
    """One upstream call, however it ended: failed, retried and fallback calls too. Kept as a fact.

    A trigger refuses every change but forgetting `raw_usage` when its retention ends.
    """

    id = models.UUIDField(primary_key=True)
    created_at = models.DateTimeField()
    reservation = models.ForeignKey(Reservation, related_name="attempts", db_index=False, **HOT)
    number = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10)
    billed = models.BooleanField()
    kind = models.CharField(max_length=20)
    team_id = models.UUIDField(null=True)
    deployment_id = models.UUIDField(null=True)
    price_key = models.CharField(max_length=200)
    requested_model = models.CharField(max_length=200, blank=True)
    served_model = models.CharField(max_length=200, blank=True)
    upstream_id = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=100, blank=True)
    turn_id = models.UUIDField(null=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    finish_raw = models.CharField(max_length=200, blank=True)
    error = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=20)
    estimated = models.BooleanField()
    estimate_reason = models.CharField(max_length=40, blank=True)
    input_tokens = models.BigIntegerField()
    """Whole input, cache included."""
    output_tokens = models.BigIntegerField()
    """Whole output, reasoning included."""
    cache_read_tokens = models.BigIntegerField()
    cache_write_tokens = models.BigIntegerField()
    reasoning_tokens = models.BigIntegerField()
    quantities = models.JSONField()
    """Every disjoint bucket and unit that is not empty, by component."""
    raw_usage = models.JSONField(null=True)
    reported_cost = models.DecimalField(**AMOUNT, null=True)
    """What the provider says the call cost: a witness, never the amount booked. See the flag `cost_disagrees`."""
    reported_currency = models.CharField(max_length=3, default="", db_default="")
    local_input_tokens = models.BigIntegerField(null=True)
    local_output_tokens = models.BigIntegerField(null=True)
    tokenizer = models.CharField(max_length=60, blank=True)
    ttft_ms = models.IntegerField(null=True)
    total_ms = models.IntegerField(null=True)
    queue_ms = models.IntegerField(null=True)
    """In our own line, before it was sent."""
    itl_ms = models.FloatField(null=True)
    """Mean time between two output tokens."""
    prompt_facts = models.JSONField(null=True)
    """What our own count saw of the prompt, none of its words; what the server said of it stands beside it."""
    flags = models.JSONField(default=list)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["reservation", "number"], name="billing_attempt_once"),
        )
        indexes = (
            models.Index(fields=["deployment_id", "created_at"], name="billing_attempt_deployment"),
            models.Index(
                fields=["deployment_id", "created_at"],
                condition=Q(kind="chat", source="server_final", local_input_tokens__gt=0),
                name="billing_attempt_drift",
            ),
            models.Index(fields=["reservation"], condition=~Q(flags=[]), name="billing_attempt_disputed"),
        )

    def __str__(self) -> str:
        return f"{self.reservation_id}/{self.number} {self.outcome}"

"""Sums of the ledger, kept beside it so that a year is read in milliseconds. Never the truth: `ledger_verify` proves
them equal to the entries, and `ledger_verify --rebuild` makes them anew.
"""

from datetime import UTC, datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models

from app.billing.models.budgets import AMOUNT


class Grain(models.TextChoices):
    """What one sum covers: which owners it tells apart (`types.spending.GRAINS`), over how long."""

    QUARTER = "quarter"
    """A quarter of an hour of UTC, every owner. Every zone's days begin on one, half-hour zones included."""
    HOUSE_QUARTER = "house15min"
    """Deployment, model and kind alone."""
    DAY = "day"
    """A day of the installation's zone, every owner."""
    MONTH = "month"
    """A month of the installation's zone, every owner."""
    TEAM_DAY = "teamday"
    TEAM_MONTH = "teammonth"
    """Without person and key."""
    PLAIN_DAY = "plainday"
    PLAIN_MONTH = "plainmonth"
    """Without person, key and collections."""
    USER_MONTH = "usermonth"
    """Without key and collections."""
    PAYER_DAY = "payerday"
    PAYER_MONTH = "payermonth"
    """Team, person and key alone."""
    HOUSE_DAY = "houseday"
    HOUSE_MONTH = "housemonth"
    """Deployment, model and kind alone."""
    THREAD = "thread"
    """A month of one thread of calls, which is a conversation to its caller."""
    THREAD_LIFE = "threadlife"
    """All of a thread."""


class Rollup(models.Model):
    """The sum of all entries of one grain, time and set of owners; credit that moves is in none.

    One partition a grain, made by the migration. Owners are opaque, as in the ledger.
    """

    id = models.BigAutoField(primary_key=True)
    grain = models.CharField(max_length=10, choices=Grain)
    at = models.DateTimeField()
    """The first instant that it covers."""
    team_id = models.UUIDField(null=True)
    account_id = models.UUIDField(null=True)
    key_id = models.UUIDField(null=True)
    deployment_id = models.UUIDField(null=True)
    model = models.CharField(max_length=200, default="")
    call_kind = models.CharField(max_length=20, default="")
    collections = ArrayField(models.UUIDField(), null=True)
    """All that the call drew on; null where it drew on none, or the grain does not tell."""
    thread_id = models.UUIDField(null=True)
    entries = models.IntegerField()
    requests = models.IntegerField()
    """Reservations with a chat charge, each counted at its first."""
    price = models.DecimalField(**AMOUNT)
    cost = models.DecimalField(**AMOUNT)
    """Of the entries whose cost is known; `uncosted` counts the others."""
    estimated_price = models.DecimalField(**AMOUNT)
    estimated = models.IntegerField()
    unpriced = models.IntegerField()
    """Entries without a known price, which are in no sum of money."""
    uncosted = models.IntegerField()
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    cached_tokens = models.BigIntegerField()
    """Of the input."""
    reasoning_tokens = models.BigIntegerField()
    """Of the output."""

    def __str__(self) -> str:
        return f"{self.grain} {self.at} {self.price}"


class RollupPending(models.Model):
    """An entry that is in no roll-up yet. A trigger writes it with the entry; folding takes it away."""

    entry_id = models.UUIDField(primary_key=True)

    def __str__(self) -> str:
        return str(self.entry_id)


class RollupZone(models.Model):
    """The zone whose days and months the coarse grains are: one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    zone = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.zone


class RollupBuild(models.Model):
    """A grain that came after entries did and is not whole yet, so that no reader takes it. Gone when it is."""

    grain = models.CharField(primary_key=True, max_length=10, choices=Grain)
    part = models.CharField(max_length=10, choices=Grain)
    """The finer one that it is the sum of."""
    done_to = models.DateTimeField(default=datetime(1900, 1, 1, tzinfo=UTC))
    """Before this it is whole."""

    def __str__(self) -> str:
        return f"{self.grain} from {self.part} to {self.done_to}"


class BusyHour(models.Model):
    """How long a server of ours worked in one booked hour, which no later call changes. Idle shares come from it."""

    id = models.BigAutoField(primary_key=True)
    deployment_id = models.UUIDField()
    at = models.DateTimeField()
    seconds = models.DecimalField(max_digits=7, decimal_places=3)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["deployment_id", "at"], name="billing_busyhour_once"),)

    def __str__(self) -> str:
        return f"{self.deployment_id} {self.at} {self.seconds}"

"""How fast somebody may call. What is counted lives in Valkey; only the limits are rows."""

from django.db import models
from django.db.models import Q

from app.common.models import BaseModel


class RateLimit(BaseModel):
    """Limits a minute and at once, of whom `subject` names (see `subjects`); a `*` is the default of its scope.

    Null is no limit, 0 is nothing at all.
    """

    scope = models.CharField(max_length=12)
    subject = models.CharField(max_length=80, unique=True)
    requests = models.PositiveIntegerField(null=True, blank=True)
    """A minute."""
    tokens = models.PositiveBigIntegerField(null=True, blank=True)
    """A minute, input and output together."""
    streams = models.PositiveIntegerField(null=True, blank=True)
    """Answers being written at once."""
    set_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(scope__in=["installation", "team", "person", "key"]), name="billing_rate_scope"
            ),
        )

    def __str__(self) -> str:
        return (
            f"{self.subject}: {self.requests} requests, {self.tokens} tokens a minute, {self.streams} at once"
        )

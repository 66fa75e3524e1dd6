"""What inference servers say they have counted, to be held against what we booked."""

from django.db import models

from app.common.models import BaseModel


class CounterSample(BaseModel):
    """A server's own token counters at one moment. They begin at 0 again when the server is started anew."""

    backend_id = models.UUIDField()
    taken_at = models.DateTimeField()
    """Before the page was asked for, by the database's clock."""
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["backend_id", "taken_at"], name="billing_sample_once"),
        )

    def __str__(self) -> str:
        return f"{self.backend_id} at {self.taken_at}"

"""What every outbox has: an address that is told, and what it has not been told yet."""

from django.db import models

from app.common.crypto import decrypt, encrypt
from app.common.models import BaseModel


class WebhookBase(BaseModel):
    """Abstract: an address, its secret, and how telling it goes."""

    name = models.CharField(max_length=100)
    url = models.CharField(max_length=500)
    secret = models.TextField(editable=False)
    """What its messages are signed with, encrypted."""
    open = models.BooleanField(default=False)
    paused_until = models.DateTimeField(null=True)
    """It did not take the last messages, so it is left in peace until then."""
    failures = models.PositiveIntegerField(default=0)
    """Batches in a row of which it took nothing."""
    delivered = models.PositiveBigIntegerField(default=0)
    last_delivered_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def plain_secret(self) -> str:
        """Never shown again, never logged."""
        return decrypt(self.secret)

    def set_secret(self, value: str) -> None:
        """Keep `value` encrypted; the caller saves."""
        self.secret = encrypt(value)


class DeliveryBase(models.Model):
    """Abstract: a message that a webhook has not taken yet. Written by a trigger in the transaction of what it tells
    of, so none can be missing; removed when the webhook says yes. Whoever inherits adds `webhook` and the message.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10)
    """pending; dead: given up after the last try, until somebody sends it again."""
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    next_at = models.DateTimeField()
    """Not before; while it is being sent, the end of the lease."""
    last_status = models.PositiveIntegerField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        abstract = True

"""What every row of the web tier has: a time-ordered key made by us, and the instant it was written."""

from uuid import UUID

from django.db import models
from uuid_utils.compat import uuid7 as _uuid7

from app.common.clock import now


def uuid7() -> UUID:
    """A new UUIDv7: opaque to clients, ordered by time in an index."""
    return _uuid7()


class BaseModel(models.Model):
    """Abstract: UUIDv7 primary key and creation time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        abstract = True

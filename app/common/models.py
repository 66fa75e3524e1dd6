"""What every row of the web tier has: a time-ordered key made by us, and the instant it was written."""

from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.db import models
from uuid_utils.compat import uuid7 as _uuid7

from app.common.clock import now


def uuid7() -> UUID:
    """A new UUIDv7: opaque to clients, ordered by time in an index."""
    return _uuid7()


def uuid7_of(moment: datetime, name: str) -> UUID:
    """The UUIDv7 of a moment and a name: the same for the same two, and ordered by the moment like any other."""
    random = int.from_bytes(sha256(name.encode()).digest()[:10])
    stamp = int(moment.timestamp() * 1000) << 80
    return UUID(int=stamp | 7 << 76 | (random >> 62 & 0xFFF) << 64 | 2 << 62 | random & (1 << 62) - 1)


class BaseModel(models.Model):
    """Abstract: UUIDv7 primary key and creation time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        abstract = True

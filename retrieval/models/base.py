"""What every row of the retrieval tier has."""

from django.db import models
from uuid_utils.compat import uuid7


class Row(models.Model):
    """Base of every row: a time-ordered key, so that indexes grow at one end."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

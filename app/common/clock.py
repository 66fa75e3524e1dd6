"""The one place that asks what time it is, so that a test can set it."""

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """The present instant in UTC."""
    return timezone.now()

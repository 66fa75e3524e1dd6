"""What billing may forget: the servers' raw usage blocks. What was booked from them stays."""

from datetime import datetime

from django.db import connection

_BATCH = 5_000


def raw_usage_forget(*, before: datetime) -> int:
    """Forget the raw blocks of older calls, in small statements; returns how many."""
    forgotten = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "UPDATE billing_usageattempt SET raw_usage = NULL WHERE id IN (SELECT id FROM billing_usageattempt "
                "WHERE raw_usage IS NOT NULL AND created_at < %s LIMIT %s)",
                [before, _BATCH],
            )
            changed: int = cursor.rowcount
            forgotten += changed
            if changed < _BATCH:
                return forgotten

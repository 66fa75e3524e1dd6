"""Writers of one thing take turns."""

from datetime import datetime

from django.db import connection


def turn_take(name: str) -> datetime:
    """Take turns with other writers of the same thing until the transaction ends; returns the database's time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant

"""Keeps the roll-ups beside the ledger; see `sql/folding.sql`. Reads are in `spending`."""

from django.conf import settings
from django.db import connection

from app.billing.models import BusyHour

BATCH = 20_000
"""Entries a statement adds up: enough to share rows between entries, few enough to end within a second or two."""


def rollups_fold(*, batch: int = BATCH, batches: int = 100) -> int:
    """Add up what is pending. Returns how many entries; safe to repeat, to run twice at once and to kill."""
    count = 0
    for _ in range(batches):
        folded = _fold(batch)
        count += folded
        if folded < batch:
            break
    return count


def rollups_build(*, steps: int = 24) -> int:
    """Make so many months of grains that came with an update; until a grain is whole, readers take a finer one.

    Each month is a transaction of its own, which only folding waits for. Returns how many steps were taken; 0 when
    every grain is whole. Safe to repeat, to run twice at once and to kill.
    """
    for taken in range(steps):
        with connection.cursor() as cursor:
            cursor.execute("SELECT billing_rollup_build()")
            if not cursor.fetchone()[0]:
                return taken
    return steps


def rollups_rebuild() -> int:
    """Make every roll-up anew from the entries. Returns how many entries are in them.

    Hours of own servers are only forgotten: readers add up what is missing, and the next booking writes it down.
    """
    BusyHour.objects.all().delete()
    return _fold(None)


def _fold(limit: int | None) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_rollup_fold(%s, %s)", [settings.INSTALLATION_ZONE, limit])
        count: int = cursor.fetchone()[0]
    return count

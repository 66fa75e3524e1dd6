"""Replays the ledger: every balance is rebuilt from its rows and compared to the last digit."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import connection, transaction

from app.billing.verification_checks import CHECKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A place where a stored figure is not what its rows add up to."""

    check: str
    row: str
    """What and which id."""
    stored: str
    rebuilt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was replayed, and what did not agree."""

    entries: int
    price: Decimal
    """Sum of all entries, in the installation's currency."""
    differences: tuple[Difference, ...]


def ledger_verify() -> Verification:
    """Replay everything at one moment. Reads only."""
    differences: list[Difference] = []
    with transaction.atomic(), connection.cursor() as cursor:
        if not connection.savepoint_ids:
            # One snapshot for all checks, so that calls that end meanwhile do not look like differences.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for check, query in CHECKS.items():
            cursor.execute(query)
            differences += [
                Difference(check=check, row=str(row), stored=str(stored), rebuilt=str(rebuilt))
                for row, stored, rebuilt in cursor.fetchall()
            ]
        cursor.execute("SELECT count(*), coalesce(sum(price), 0) FROM billing_ledgerentry")
        entries, price = cursor.fetchone()
    return Verification(entries=entries, price=price, differences=tuple(differences))


def windows_rebuild() -> int:
    """Set every window to what its lines add up to. Returns how many were wrong."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM billing_budgetwindow ORDER BY id FOR NO KEY UPDATE")
        cursor.execute(
            """
            UPDATE billing_budgetwindow w SET spent = x.spent, held = x.held
            FROM (
              SELECT w.id, coalesce(sum(l.spent) FILTER (WHERE l.state = 2), 0) AS spent,
                coalesce(sum(l.amount) FILTER (WHERE l.state < 2), 0) AS held
              FROM billing_budgetwindow w LEFT JOIN billing_reservationline l ON l.window_id = w.id GROUP BY w.id
            ) x
            WHERE w.id = x.id AND w.unit NOT IN ('bytes', 'pages')
              AND (w.spent, w.held) IS DISTINCT FROM (x.spent, x.held)
            """
        )
        corrected: int = cursor.rowcount
    return corrected

"""Replays the ledger: every balance is rebuilt from its rows and compared to the last digit."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import connection, transaction


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


_UNIT = "CASE per_units WHEN 1 THEN 1 WHEN 1000 THEN 0.001 ELSE 0.000001 END"

# Each gives (row, stored, rebuilt) where the two disagree.
_CHECKS = {
    "line = quantity × unit price": f"""
        SELECT 'ledger line ' || id, amount, unit_price * quantity * {_UNIT} FROM billing_ledgerline
        WHERE amount IS DISTINCT FROM unit_price * quantity * {_UNIT}""",  # noqa: S608 - a constant
    "entry = sum of its lines": """
        SELECT 'ledger entry ' || e.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_ledgerentry e
        LEFT JOIN (
          SELECT entry_id, sum(amount) FILTER (WHERE side = 'price') AS price,
            sum(amount) FILTER (WHERE side = 'cost') AS cost
          FROM billing_ledgerline GROUP BY entry_id
        ) l ON l.entry_id = e.id
        CROSS JOIN LATERAL (VALUES ('price', e.price, l.price), ('cost', coalesce(e.cost_native, e.cost), l.cost))
          AS s(side, stored, rebuilt)
        WHERE coalesce(s.stored, 0) <> coalesce(s.rebuilt, 0)""",
    "cost = cost in its own currency at the entry's exchange rate": """
        SELECT 'ledger entry ' || e.id, e.cost, billing_even(e.cost_native * x.rate, 15)
        FROM billing_ledgerentry e LEFT JOIN billing_exchangerate x ON x.id = e.exchange_rate_id
        WHERE e.cost_native IS NOT NULL AND e.cost IS DISTINCT FROM billing_even(e.cost_native * x.rate, 15)""",
    "reservation = sum of its entries": """
        SELECT 'reservation ' || r.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_reservation r
        LEFT JOIN (
          SELECT reservation_id, sum(price) AS price, sum(cost) AS cost FROM billing_ledgerentry GROUP BY reservation_id
        ) e ON e.reservation_id = r.id
        CROSS JOIN LATERAL (VALUES ('price', r.price, e.price), ('cost', r.cost, e.cost)) AS s(side, stored, rebuilt)
        WHERE coalesce(s.stored, 0) <> coalesce(s.rebuilt, 0)""",
    "spent of a reservation in a window = what its entries say": """
        SELECT 'reservation ' || l.reservation_id || ' in window ' || l.window_id, l.spent, e.booked
        FROM (
          SELECT reservation_id, window_id, unit, price_key, sum(spent) AS spent FROM billing_reservationline
          WHERE unit <> 'requests' GROUP BY reservation_id, window_id, unit, price_key
        ) l
        CROSS JOIN LATERAL (
          SELECT coalesce(
            sum(CASE WHEN l.unit = 'money' THEN e.price ELSE e.input_tokens + e.output_tokens END), 0) AS booked
          FROM billing_ledgerentry e JOIN billing_usageattempt a ON a.id = e.attempt_id
          WHERE e.reservation_id = l.reservation_id AND a.billed AND l.price_key IN ('', e.price_key)
            AND (l.unit = 'money' OR a.kind = 'chat')
        ) e
        WHERE l.spent <> e.booked""",
    "window = sum of its lines": """
        SELECT 'window ' || w.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_budgetwindow w
        LEFT JOIN (
          SELECT window_id, sum(spent) FILTER (WHERE state = 2) AS spent, sum(amount) FILTER (WHERE state < 2) AS held
          FROM billing_reservationline GROUP BY window_id
        ) l ON l.window_id = w.id
        CROSS JOIN LATERAL (VALUES ('spent', w.spent, l.spent), ('held', w.held, l.held)) AS s(side, stored, rebuilt)
        WHERE s.stored <> coalesce(s.rebuilt, 0) AND w.unit NOT IN ('bytes', 'pages')""",
    "prepaid credit = sum of its movements": """
        SELECT 'window ' || w.id, w.limit_snapshot, c.amount
        FROM billing_budgetwindow w
        CROSS JOIN LATERAL (
          SELECT greatest(coalesce(sum(amount), 0), 0) AS amount FROM billing_creditmovement
          WHERE w.subject = 'c:' || team_id
        ) c
        WHERE w.subject LIKE 'c:%' AND w.limit_snapshot <> c.amount""",
    "each movement of credit is booked once": """
        SELECT 'credit ' || coalesce(m.id::text, e.dedupe_key), m.amount, e.credit
        FROM billing_creditmovement m
        FULL JOIN (SELECT * FROM billing_ledgerentry WHERE credit IS NOT NULL) e ON e.dedupe_key = 'credit:' || m.id
        WHERE m.amount IS DISTINCT FROM e.credit OR m.team_id IS DISTINCT FROM e.team_id""",
    "only running calls hold": """
        SELECT 'reservation ' || r.id, r.state, 'has held lines'
        FROM billing_reservation r JOIN billing_reservationline l ON l.reservation_id = r.id
        WHERE l.state = 0 AND r.state <> 'held'""",
    "nothing points at a missing row": """
        SELECT 'line ' || l.id, 'missing', coalesce(w.id, r.id)::text
        FROM billing_reservationline l
        LEFT JOIN billing_budgetwindow w ON w.id = l.window_id
        LEFT JOIN billing_reservation r ON r.id = l.reservation_id
        WHERE w.id IS NULL OR r.id IS NULL
        UNION ALL
        SELECT 'ledger line ' || l.id, 'missing', l.entry_id::text
        FROM billing_ledgerline l LEFT JOIN billing_ledgerentry e ON e.id = l.entry_id WHERE e.id IS NULL
        UNION ALL
        SELECT 'ledger entry ' || e.id, 'missing', e.attempt_id::text
        FROM billing_ledgerentry e LEFT JOIN billing_usageattempt a ON a.id = e.attempt_id
        LEFT JOIN billing_reservation r ON r.id = e.reservation_id
        WHERE (e.attempt_id IS NOT NULL AND a.id IS NULL) OR (e.reservation_id IS NOT NULL AND r.id IS NULL)""",
}


def ledger_verify() -> Verification:
    """Replay everything at one moment. Reads only."""
    differences: list[Difference] = []
    with transaction.atomic(), connection.cursor() as cursor:
        if not connection.savepoint_ids:
            # One snapshot for all checks, so that calls that end meanwhile do not look like differences.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for check, query in _CHECKS.items():
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

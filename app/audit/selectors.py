"""Reading the audit log."""

import csv
from collections.abc import Iterable
from datetime import datetime
from io import StringIO

from app.audit.models import AuditEntry, Outcome, Verb

COLUMNS = (
    "created_at", "verb", "outcome", "actor_account", "actor_key", "team_id", "object_kind", "object_id", "before",
    "after", "reason", "request_id", "id",
)  # fmt: skip
CSV_ROWS = 100_000
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def audit_csv(rows: Iterable[AuditEntry]) -> str:
    """The rows as CSV; what a spreadsheet would take for a formula begins with an apostrophe."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in COLUMNS])
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text}" if text.startswith(_RISKY) else text


def last_at(verb: Verb) -> datetime | None:
    """When this was last done; None when it never was."""
    row = AuditEntry.objects.filter(verb=verb, outcome=Outcome.OK).order_by("-id").first()
    return row.created_at if row else None

"""How a migration runs the files of app/audit/sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


def run(name: str) -> migrations.RunSQL:
    """One file."""
    return migrations.RunSQL((SQL / name).read_text(), migrations.RunSQL.noop)

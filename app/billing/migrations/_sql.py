"""How a migration runs the files of app/billing/sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


def run(name: str) -> migrations.RunSQL:
    """One file. Bodies are checked when they first run, because a later state of a file may name columns that this
    migration does not know yet."""
    text = (SQL / name).read_text()
    return migrations.RunSQL("SET LOCAL check_function_bodies = off;\n" + text, migrations.RunSQL.noop)

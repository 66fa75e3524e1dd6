"""What the database says at one moment, while its dump is written of the same moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from app.common.errors import PartFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Facts of one moment."""

    name: str
    """What `pg_dump --snapshot` takes; good while the transaction is open."""
    at: datetime
    postgres: str
    migrations: dict[str, str]
    rows: dict[str, int]
    ledger: tuple[int, str]
    originals: frozenset[str]


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection]:
    """A connection of its own. Errors: PartFailed when the database does not answer."""
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except psycopg.OperationalError as exc:
        raise PartFailed("database", f"The database does not answer: {exc}") from exc
    with connection:
        yield connection


@contextmanager
def snapshot(url: str) -> Iterator[Snapshot]:
    """The moment, held open. Errors: PartFailed."""
    with connected(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        name, at, version = _one(
            connection, "SELECT pg_export_snapshot(), now(), current_setting('server_version')"
        )
        count, price = _one(connection, "SELECT count(*), coalesce(sum(price), 0) FROM billing_ledgerentry")
        migrations = connection.execute(
            "SELECT app, max(name) FROM django_migrations GROUP BY app"
        ).fetchall()
        yield Snapshot(
            name=name,
            at=at,
            postgres=version,
            migrations=dict(migrations),
            rows=rows_counted(connection),
            ledger=(count, f"{price:f}"),
            originals=frozenset(originals_named(connection)),
        )


def tables(connection: psycopg.Connection) -> list[str]:
    """Tables of the schema that belong to no extension, by name."""
    found = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT EXISTS "
        "(SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') ORDER BY 1"
    )
    return [name for (name,) in found]


def rows_counted(connection: psycopg.Connection) -> dict[str, int]:
    """How many rows each table has; each is read, so a page that cannot be read is an error here."""
    query = sql.SQL("SELECT count(*) FROM {}")
    return {name: _one(connection, query.format(sql.Identifier(name)))[0] for name in tables(connection)}


def originals_named(connection: psycopg.Connection) -> set[str]:
    """Hashes of the originals that documents have, and of those that their served versions have."""
    found = connection.execute(
        "SELECT sha256 FROM retrieval_document UNION SELECT serving_sha256 FROM retrieval_document"
    )
    return {name for (name,) in found if name}


def _one(connection: psycopg.Connection, query: LiteralString | sql.Composed) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(query).fetchone()
    assert row is not None
    return row

"""Databases that a test makes beside its own, and drops again."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql


@contextmanager
def database_beside(server: str, name: str) -> Iterator[None]:
    """An empty database `name` on the server at `server`, made by the role of that address; gone afterwards."""
    with psycopg.connect(server, autocommit=True) as owner:
        _drop(owner, name)
        owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield
        _drop(owner, name)


def _drop(owner: psycopg.Connection, name: str) -> None:
    # Not WITH (FORCE): that wants the right to end the autovacuum worker that happens to be there, which only
    # a superuser has; the plain form ends that one by itself and waits for it.
    owner.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = %s AND backend_type = 'client backend'",
        [name],
    )
    owner.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))

"""Two roles and one database: the owner migrates, the application cannot change the schema."""

import psycopg
from psycopg import sql

from app.embedded.postgres import APP, DATABASE, OWNER, Cluster

_PREPARED = "tessera roles 1"
# In template1 too: a test database copied from it then has the extension and the same defaults.
_PER_DATABASE = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    "GRANT USAGE ON SCHEMA public TO {app}",
    "GRANT CREATE, USAGE ON SCHEMA public TO {owner}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO {app}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT EXECUTE ON FUNCTIONS TO {app}",
)
_DATABASE = (
    "CREATE DATABASE {database} OWNER {owner} TEMPLATE template1",
    "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
    "GRANT CONNECT ON DATABASE {database} TO {app}",
)


def _run(connection: psycopg.Connection, statements: tuple[str, ...]) -> None:
    names = {"owner": sql.Identifier(OWNER), "app": sql.Identifier(APP), "database": sql.Identifier(DATABASE)}
    for statement in statements:
        connection.execute(sql.SQL(statement).format(**names))


def _exists(connection: psycopg.Connection, query: sql.SQL, name: str) -> bool:
    return connection.execute(query, (name,)).fetchone() is not None


def _role_ensure(connection: psycopg.Connection, name: str, password: str, attributes: str) -> None:
    known = _exists(connection, sql.SQL("SELECT 1 FROM pg_roles WHERE rolname = %s"), name)
    verb = sql.SQL(
        "ALTER ROLE {} WITH LOGIN PASSWORD {} " if known else "CREATE ROLE {} WITH LOGIN PASSWORD {} "
    )
    connection.execute(verb.format(sql.Identifier(name), sql.Literal(password)) + sql.SQL(attributes))


def roles_prepare(cluster: Cluster) -> None:
    """Create roles, extension, default privileges and the database: once, and again after a crash."""
    with psycopg.connect(cluster.superuser_url("postgres"), autocommit=True) as connection:
        comment = "SELECT 1 FROM pg_database WHERE shobj_description(oid, 'pg_database') = %s"
        if _exists(connection, sql.SQL(comment), _PREPARED):
            return
        _role_ensure(connection, OWNER, cluster.secrets.owner_password, "NOSUPERUSER CREATEDB NOCREATEROLE")
        _role_ensure(connection, APP, cluster.secrets.app_password, "NOSUPERUSER NOCREATEDB NOCREATEROLE")
        with psycopg.connect(cluster.superuser_url("template1"), autocommit=True) as template:
            _run(template, _PER_DATABASE)
        if not _exists(connection, sql.SQL("SELECT 1 FROM pg_database WHERE datname = %s"), DATABASE):
            _run(connection, _DATABASE[:1])
        _run(connection, _DATABASE[1:])
        note = sql.SQL("COMMENT ON DATABASE {} IS {}")
        connection.execute(note.format(sql.Identifier(DATABASE), sql.Literal(_PREPARED)))

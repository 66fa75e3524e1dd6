"""Restoring a backup into an empty installation. The database comes back in one transaction, after the originals.

Killed half-way and run again it goes on: what lies in the folder of originals by then is marked as this backup's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import psycopg
from django.db import connection as django_connection
from psycopg import sql

from app.audit.services import Verb, audit
from app.common.errors import Conflict, InvalidInput
from app.ops.backup import Say, backup_blob, originals_root
from app.ops.manifest import (
    DUMP,
    Damaged,
    Manifest,
    file_copy,
    file_sha256,
    file_write,
    key_check,
    manifest_read,
)
from app.ops.pg_tools import owner_url, pg_run
from app.ops.snapshot import connected, rows_counted, tables
from retrieval.storage import blob_path

MARK = ".restoring"
_KINDS = {"r": "TABLES", "S": "SEQUENCES", "f": "FUNCTIONS", "T": "TYPES"}


def restore(folder: Path, *, say: Say = lambda _: None) -> Manifest:
    """Bring a backup back, or go on with it. Errors: InvalidInput, WrongKey, Conflict for a target that is not empty.

    Everything about the backup is checked before anything is written.
    """
    manifest = manifest_read(folder)
    key_check(manifest)
    if file_sha256(folder / DUMP) != manifest.dump_sha256:
        raise InvalidInput(f"{folder / DUMP} is damaged: its hash is another. Restore another backup.")
    if _check_target(manifest):
        say("The database is here already; the last restore was broken off after it.")
    else:
        say(f"{len(manifest.originals)} originals.")
        _originals_restore(folder, manifest)
        say(f"The database of {manifest.made_at} is being restored.")
        with _defaults_aside():
            pg_run(
                "pg_restore",
                *(
                    "--single-transaction",
                    "--exit-on-error",
                    "--no-owner",
                    "--no-comments",
                    str(folder / DUMP),
                ),
                url=owner_url(),
            )
    _check_rows(manifest)
    (originals_root() / MARK).unlink(missing_ok=True)
    # A backup of an older version has no audit log until it is migrated.
    if "audit_auditentry" in django_connection.introspection.table_names():
        audit(Verb.RESTORE, object_kind="backup", object_id=manifest.id, before=manifest.made_at)
    return manifest


def _check_target(manifest: Manifest) -> bool:
    """Whether the database was restored by an earlier run. Errors: Conflict for a target that holds something else."""
    root = originals_root()
    mark = root / MARK
    ours = mark.exists() and mark.read_text().strip() == manifest.id
    with connected(owner_url()) as connection:
        there = tables(connection)
        if there and not (ours and rows_counted(connection) == dict(manifest.rows)):
            raise Conflict(
                f"The database is not empty: it has {len(there)} tables. A backup is restored into an empty one only, "
                "so that nothing is overwritten. Make a new database, or use a new data directory. Nothing was changed."
            )
    if not ours and root.is_dir() and any(path.is_file() for path in root.rglob("*")):
        raise Conflict(
            f"{root} is not empty. A backup is restored beside no other originals: move that folder away, or set "
            "ORIGINALS_DIR to an empty one. Nothing was changed."
        )
    return bool(there)


def _originals_restore(folder: Path, manifest: Manifest) -> None:
    root = originals_root()
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    file_write(root / MARK, manifest.id.encode())
    for sha256, size in manifest.originals.items():
        target = blob_path(sha256)
        if target.exists() and target.stat().st_size == size:
            continue
        try:
            file_copy(backup_blob(folder, sha256), target, sha256=sha256)
        except (FileNotFoundError, Damaged) as exc:
            raise InvalidInput(
                f"An original in the backup is missing or damaged: {backup_blob(folder, sha256)}. The database was not "
                "touched. Put that file back from a copy of the backup, or restore another backup."
            ) from exc


@contextmanager
def _defaults_aside() -> Iterator[None]:
    """Take back meanwhile what the owner's new tables give to others by themselves.

    A dump only adds rights: a table that is made with the right to change it would keep that, the ledger too.
    """
    query = (
        "SELECT defaclobjtype, grantee::regrole::text, string_agg(privilege_type, ', ') "
        "FROM pg_default_acl, aclexplode(defaclacl) "
        "WHERE defaclrole = current_user::regrole AND defaclnamespace = 0 AND grantee NOT IN (0, defaclrole) "
        "GROUP BY 1, 2"
    )
    with connected(owner_url()) as connection:
        given = [
            (_KINDS[kind], role, rights) for kind, role, rights in connection.execute(query) if kind in _KINDS
        ]
        _defaults(connection, "REVOKE {rights} ON {kind} FROM {role}", given)
    try:
        yield
    finally:
        with connected(owner_url()) as connection:
            _defaults(connection, "GRANT {rights} ON {kind} TO {role}", given)


def _defaults(
    connection: psycopg.Connection, what: LiteralString, given: Sequence[tuple[str, str, str]]
) -> None:
    statement: LiteralString = "ALTER DEFAULT PRIVILEGES " + what
    for kind, role, rights in given:
        # All three come from the catalogue of the database, the role quoted where it must be.
        parts = {"kind": sql.SQL(kind), "role": sql.SQL(role), "rights": sql.SQL(rights)}
        connection.execute(sql.SQL(statement).format(**parts))


def _check_rows(manifest: Manifest) -> None:
    with connected(owner_url()) as connection:
        found = rows_counted(connection)
    if found != dict(manifest.rows):
        other = [name for name in manifest.rows if found.get(name) != manifest.rows[name]]
        raise InvalidInput(
            f"The restored database has other rows than the backup says, in {', '.join(other)}."
        )

"""Restoring a backup into an empty installation. The database comes back in one transaction, after the originals.

Killed half-way and run again it goes on: what lies in the folder of originals by then is marked as this backup's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import psycopg
from django.conf import settings
from django.db import connection as django_connection
from psycopg import sql

from app.audit.services import Verb, audit
from app.common.errors import Conflict, InvalidInput
from app.ops.backup import Say, backup_blob
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
from retrieval.storage import Received, blob_keep, blob_size
from retrieval.stores import Gone, scratch_file, store

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
    store().remove(MARK)
    # A backup of an older version has no audit log until it is migrated.
    if "audit_auditentry" in django_connection.introspection.table_names():
        audit(Verb.RESTORE, object_kind="backup", object_id=manifest.id, before=manifest.made_at)
    return manifest


def _check_target(manifest: Manifest) -> bool:
    """Whether the database was restored by an earlier run. Errors: Conflict for a target that holds something else."""
    place = store()
    ours = _begun() == manifest.id
    with connected(owner_url()) as connection:
        there = tables(connection)
        if there and not (ours and rows_counted(connection) == dict(manifest.rows)):
            raise Conflict(
                f"The database is not empty: it has {len(there)} tables. A backup is restored into an empty one only, "
                "so that nothing is overwritten. Make a new database, or use a new data directory. Nothing was changed."
            )
    if not ours and next(place.keys(), None) is not None:
        raise Conflict(
            f"{place.where('')} is not empty. A backup is restored beside no other originals: move them away, or set "
            f"{'ORIGINALS_BUCKET' if settings.ORIGINALS_BUCKET else 'ORIGINALS_DIR'} to an empty one. Nothing was "
            "changed."
        )
    return bool(there)


def _begun() -> str | None:
    """The id of the backup whose restoring was begun here."""
    try:
        with store().local(MARK) as path:
            return path.read_text().strip()
    except Gone:
        return None


def _originals_restore(folder: Path, manifest: Manifest) -> None:
    with scratch_file() as path:
        file_write(path, manifest.id.encode())
        store().keep(MARK, path)
    for sha256, size in manifest.originals.items():
        if blob_size(sha256) == size:
            continue
        try:
            with scratch_file() as path:
                file_copy(backup_blob(folder, sha256), path, sha256=sha256)
                blob_keep(Received(path, sha256, size))
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

"""A backup: the database of one moment, the originals it names, and a manifest that is written last.

Killed half-way it has no manifest, which every reader of it refuses; run again into the same folder it keeps the
originals that are there and whole, and makes the rest anew. The field-encryption keys are never in it.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.audit.services import Verb, audit
from app.common.errors import Conflict
from app.common.models import uuid7
from app.ops.manifest import (
    DUMP,
    MANIFEST,
    ORIGINALS,
    UNFINISHED,
    Damaged,
    Manifest,
    file_copy,
    file_sha256,
    file_write,
    folder_sync,
    manifest_read,
    manifest_write,
)
from app.ops.pg_tools import owner_url, pg_run
from app.ops.snapshot import Snapshot, connected, originals_named, snapshot
from retrieval.storage import blob_file

Say = Callable[[str], None]


def backup_make(folder: Path, *, like: Path | None = None, say: Say = lambda _: None) -> Manifest:
    """Write a backup into an empty folder, or finish one that was broken off there.

    `like`: an earlier backup on the same disk, whose originals are linked instead of copied.
    Errors: Conflict for a folder that holds something else, PartFailed.
    """
    _check_folder(folder)
    with _alone(folder):
        file_write(folder / UNFINISHED, b"This backup is not whole; run it again.\n")
        with snapshot(owner_url()) as moment:
            say(f"The database of {moment.at:%Y-%m-%d %H:%M:%S} UTC is being written.")
            _dump(folder / DUMP, moment)
        say(f"{len(moment.originals)} originals.")
        sizes, missing = _originals_copy(folder, moment, like)
        manifest = manifest_write(folder, _manifest(folder, moment, sizes, missing))
        (folder / UNFINISHED).unlink(missing_ok=True)
        folder_sync(folder)
    audit(Verb.BACKUP, object_kind="backup", object_id=manifest.id, after=f"{len(sizes)} originals")
    return manifest


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o700)
        return
    if not folder.is_dir():
        raise Conflict(f"{folder} is a file. Name a folder that is empty or not there yet.")
    if (folder / MANIFEST).exists():
        made = manifest_read(folder).made_at
        raise Conflict(f"{folder} holds a whole backup of {made} already. Name another folder.")
    if not (folder / UNFINISHED).exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not empty. Name a folder that is empty or not there yet.")
    folder.chmod(0o700)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as exc:
        raise Conflict(f"Another backup is being written into {folder}; wait for it.") from exc
    finally:
        os.close(descriptor)


def _dump(target: Path, moment: Snapshot) -> None:
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    pg_run("pg_dump", "--format=custom", f"--snapshot={moment.name}", f"--file={part}", url=owner_url())
    part.chmod(0o600)
    part.replace(target)
    folder_sync(target.parent)


def backup_blob(folder: Path, sha256: str) -> Path:
    """Where an original lies in a backup."""
    return folder / ORIGINALS / sha256[:2] / sha256


def _originals_copy(folder: Path, moment: Snapshot, like: Path | None) -> tuple[dict[str, int], list[str]]:
    """(bytes by hash, hashes that documents name and that are not there whole)."""
    absent = []
    for sha256 in sorted(moment.originals):
        target = backup_blob(folder, sha256)
        if target.exists() or (like is not None and _linked(backup_blob(like, sha256), target)):
            continue
        try:
            with blob_file(sha256) as path:
                file_copy(path, target, sha256=sha256)
        except (FileNotFoundError, Damaged):
            absent.append(sha256)
    # What was erased while this ran is gone rightly; only what is named still and is not there is a loss.
    with connected(owner_url()) as connection:
        missing = sorted(set(absent) & originals_named(connection)) if absent else []
    kept = moment.originals - set(absent)
    return {sha256: backup_blob(folder, sha256).stat().st_size for sha256 in sorted(kept)}, missing


def _linked(source: Path, target: Path) -> bool:
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.hardlink_to(source)
    except OSError:
        return False
    return True


def _manifest(folder: Path, moment: Snapshot, sizes: dict[str, int], missing: list[str]) -> Manifest:
    dump = folder / DUMP
    return Manifest(
        id=str(uuid7()),
        made_at=moment.at.isoformat(timespec="seconds"),
        postgres=moment.postgres,
        migrations=moment.migrations,
        dump_sha256=file_sha256(dump),
        dump_size=dump.stat().st_size,
        rows=moment.rows,
        ledger_entries=moment.ledger[0],
        ledger_price=moment.ledger[1],
        originals=sizes,
        missing=tuple(missing),
    )

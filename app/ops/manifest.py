"""What a backup holds, so that it can be told whole from half, and this installation's from another's."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from django.core.exceptions import ImproperlyConfigured

from app.common.crypto import decrypt, encrypt
from app.common.errors import Conflict, InvalidInput

FORMAT = 1
MANIFEST, DUMP, ORIGINALS, UNFINISHED = "manifest.json", "database.dump", "originals", "unfinished"
_PIECE = 1 << 20


class WrongKey(Conflict):
    """The field-encryption keys of this installation do not open this backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The last file of a backup to be written: where it is, the backup is whole."""

    id: str
    made_at: str
    """RFC 3339, UTC: the moment that the database shows."""
    postgres: str
    migrations: Mapping[str, str]
    """The last one of each app."""
    dump_sha256: str
    dump_size: int
    rows: Mapping[str, int]
    """Rows by table, counted in the snapshot that was dumped."""
    ledger_entries: int
    ledger_price: str
    originals: Mapping[str, int]
    """SHA-256 → bytes."""
    missing: tuple[str, ...] = ()
    """Originals that the database names and that were not there."""
    key_check: str = ""
    """Encrypted with the field keys, which are never in a backup: it opens with the right ones only."""
    format: int = field(default=FORMAT)

    def digest(self) -> str:
        """Of everything but the check itself."""
        facts = asdict(self) | {"key_check": "", "missing": list(self.missing)}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def manifest_write(folder: Path, manifest: Manifest) -> Manifest:
    """Seal it with the field keys and put it in place at once."""
    sealed = Manifest(**asdict(manifest) | {"key_check": encrypt(manifest.digest())})
    file_write(folder / MANIFEST, json.dumps(asdict(sealed), indent=1, sort_keys=True).encode())
    return sealed


def manifest_read(folder: Path) -> Manifest:
    """Errors: InvalidInput for what is no whole backup."""
    try:
        stored: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        if stored["format"] != FORMAT:
            raise InvalidInput(
                f"{folder} is a backup of form {stored['format']}, and this program reads form {FORMAT}: "
                "restore it with the version that made it."
            )
        return Manifest(**stored | {"missing": tuple(stored["missing"])})
    except FileNotFoundError as exc:
        half = (folder / UNFINISHED).exists()
        raise InvalidInput(
            f"{folder} holds a backup that was broken off: it has no {MANIFEST}. Run `backup {folder}` again, or "
            "restore another one."
            if half
            else f"{folder} holds no backup: there is no {MANIFEST} in it."
        ) from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise InvalidInput(f"{folder}/{MANIFEST} is damaged; restore another backup.") from exc


def key_check(manifest: Manifest) -> None:
    """Errors: WrongKey when FIELD_KEYS do not open it, InvalidInput when it was changed since."""
    try:
        sealed = decrypt(manifest.key_check)
    except ImproperlyConfigured as exc:
        raise WrongKey(
            "FIELD_KEYS do not open this backup: it was made with other keys, and the stored keys of model servers "
            "could not be read. Set FIELD_KEYS to those of the installation that made it, then restore again. "
            "Nothing was changed."
        ) from exc
    if sealed != manifest.digest():
        raise InvalidInput(f"{MANIFEST} was changed after the backup was made; restore another one.")


def file_write(path: Path, content: bytes) -> None:
    """Replace a file at once, readable by its owner alone."""
    with file_part(path) as (out, _):
        out.write(content)


@contextmanager
def file_part(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file that takes its place only when everything was written; (handle, where it is meanwhile)."""
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out, part
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
        folder_sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def folder_sync(folder: Path) -> None:
    """A rename must survive a power cut, not only the bytes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: Path) -> str:
    """Hash of a file, a piece at a time. Errors: OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


class Damaged(OSError):
    """Bytes that do not have the hash they are named by."""


def file_copy(source: Path, target: Path, *, sha256: str) -> None:
    """Copy a file whose hash is known; nothing takes its place when the bytes are others. Errors: OSError, Damaged."""
    digest = hashlib.sha256()
    with source.open("rb") as file, file_part(target) as (out, _):
        while piece := file.read(_PIECE):
            digest.update(piece)
            out.write(piece)
        if digest.hexdigest() != sha256:
            raise Damaged(f"{source} does not have the hash that it is named by.")

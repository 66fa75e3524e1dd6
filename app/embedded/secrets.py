"""The secrets of one installation: made once, kept in one file, never logged."""

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from cryptography.fernet import Fernet

from app.embedded.errors import EmbeddedError
from app.embedded.paths import Layout, write_private


@dataclass(frozen=True, slots=True)
class Secrets:
    """Every generated key and password; `repr` shows none of them."""

    secret_key: str
    field_keys: tuple[str, ...]
    """Fernet keys, newest first."""
    postgres_password: str
    """Of the cluster's superuser, used only to prepare roles and extensions."""
    owner_password: str
    app_password: str
    valkey_password: str
    inference_key: str
    embedding_key: str
    admin_email: str = ""
    admin_password: str = ""
    api_key: str = ""
    """The three that the first run makes; kept so that run.json can be written again."""

    def __repr__(self) -> str:
        return "Secrets(…)"


def _word() -> str:
    return secrets.token_urlsafe(32)


def secrets_make(field_keys: tuple[str, ...] = ()) -> Secrets:
    """Fresh random values; the field keys may be those of an installation whose backup is to be restored."""
    return Secrets(
        secret_key=secrets.token_urlsafe(50),
        field_keys=field_keys or (base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),),
        postgres_password=_word(),
        owner_password=_word(),
        app_password=_word(),
        valkey_password=_word(),
        inference_key=_word(),
        embedding_key=_word(),
    )


def field_keys_given(environment: Mapping[str, str]) -> tuple[str, ...]:
    """FIELD_KEYS, or what the file at FIELD_KEYS_FILE holds. Errors: EmbeddedError for what is no key."""
    text = environment.get("FIELD_KEYS", "")
    if path := environment.get("FIELD_KEYS_FILE"):
        text = text or Path(path).read_text()
    keys = tuple(word.strip() for word in text.split(",") if word.strip())
    try:
        for key in keys:
            Fernet(key)
    except ValueError as exc:
        raise EmbeddedError(
            "FIELD_KEYS has something in it that is no Fernet key: 32 bytes in base64, several with commas between."
        ) from exc
    return keys


def secrets_open(layout: Layout, field_keys: tuple[str, ...] = ()) -> Secrets:
    """The installation's secrets, made at the first start, with `field_keys` where they are given.

    A damaged file is refused, never replaced.
    """
    try:
        text = layout.secrets.read_text()
    except FileNotFoundError:
        made = secrets_make(field_keys)
        secrets_save(layout, made)
        return made
    try:
        stored = json.loads(text)
        known = {f.name for f in fields(Secrets)}
        stored["field_keys"] = tuple(stored["field_keys"])
        found = Secrets(**{name: value for name, value in stored.items() if name in known})
    except (ValueError, TypeError, KeyError) as exc:
        raise EmbeddedError(
            f"{layout.secrets} cannot be read ({type(exc).__name__}). It holds the keys of the database and "
            "of every encrypted field, so it is not made anew: put it back from a backup, or use --data DIR."
        ) from exc
    layout.secrets.chmod(0o600)
    return found


def secrets_save(layout: Layout, value: Secrets) -> None:
    """Write the file, mode 0600, at once."""
    write_private(layout.secrets, json.dumps(asdict(value), indent=1) + "\n")


def first_run_keep(layout: Layout, value: Secrets, made: dict[str, str]) -> Secrets:
    """Remember admin_email, admin_password and api_key of the first run; later runs bring none."""
    names = ("admin_email", "admin_password", "api_key")
    changed = Secrets(**{**asdict(value), **{name: made[name] for name in names if made.get(name)}})
    if changed != value:
        secrets_save(layout, changed)
    return changed

"""The only reader of the environment.

Values come from the process environment, then from `<data>/env.json`, which `manage.py up` writes so that
every command in another shell finds the running stack. `NAME_FILE` holding a path is read as `NAME` (Docker secrets).
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

REPOSITORY = Path(__file__).resolve().parents[2]
DATA_DIR = Path(os.environ.get("TESSERA_DATA", REPOSITORY / ".local")).expanduser().resolve()

# The parts of the embedded stack that an outside server can replace, by the variable that names it.
_REPLACEABLE = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "REDIS_URL",
    "INFERENCE_URL",
    "INFERENCE_API_KEY",
    "INFERENCE_KIND",
    "INFERENCE_MODEL",
    "EMBEDDING_URL",
    "EMBEDDING_API_KEY",
    "EMBEDDING_MODEL",
    "EMBEDDING_DIMENSION",
    "EMBEDDING_QUERY_PREFIX",
    "EMBEDDING_PASSAGE_PREFIX",
)


def _from_data_dir() -> dict[str, str]:
    """What the embedded stack wrote, or nothing when it has never run here."""
    try:
        return {str(k): str(v) for k, v in json.loads((DATA_DIR / "env.json").read_text()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise ImproperlyConfigured(
            f"{DATA_DIR}/env.json cannot be read ({exc}); run `manage.py up` again."
        ) from exc


_WRITTEN = _from_data_dir()


def _empty_is_unset(name: str) -> bool:
    """An empty address, key, model or number says nothing; a prefix that is empty is one that a model wants so."""
    return name.startswith(("INFERENCE_", "EMBEDDING_")) and not name.endswith("_PREFIX")


EXTERNAL: Mapping[str, str] = {
    name: os.environ[name]
    for name in _REPLACEABLE
    if os.environ.get(name) or (name in os.environ and name.endswith("_PREFIX"))
}
"""Outside servers named in the real environment: `up` does not start its own part for these."""

PROCESS: Mapping[str, str] = os.environ
"""The process environment as a whole, to hand to child processes and to look for other servers."""


def text(name: str, default: str = "") -> str:
    """The variable, the file it points at, what `up` wrote, or the default: in that order."""
    value = os.environ.get(name)
    if value is not None and (value or not _empty_is_unset(name)):
        return value
    if path := os.environ.get(f"{name}_FILE"):
        return Path(path).read_text().strip()
    return default if _describes_another(name) else _WRITTEN.get(name, default)


def _describes_another(name: str) -> bool:
    """Whether what `up` wrote is about a server that the environment replaced: its key must not go to that one."""
    part = name.partition("_")[0]
    return part in {"INFERENCE", "EMBEDDING"} and f"{part}_URL" in EXTERNAL


def number(name: str, default: int) -> int:
    """An integer; anything else is refused by name."""
    value = text(name, str(default))
    try:
        return int(value)
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from exc


def flag(name: str, *, default: bool = False) -> bool:
    """A yes or no: 1, true, yes, on; 0, false, no, off."""
    value = text(name, "1" if default else "0").strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"", "0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def one_of(name: str, choices: Sequence[str]) -> str:
    """One of a closed list, the first by default; anything else is refused by name."""
    value = text(name, choices[0]).strip().lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} can be {', '.join(choices)}, not {value!r}.")
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, blanks dropped."""
    return [w.strip() for w in text(name, default).split(",") if w.strip()]


def database(url: str) -> dict[str, Any]:
    """A postgresql:// URL as Django's DATABASES entry. Query parameters become libpq options."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            "DATABASE_URL must begin with postgresql:// (Tessera needs PostgreSQL with pgvector)."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "tessera",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        # For `app.common.db.prepared`. A pooler between must know prepared statements, as PgBouncer does since 1.21.
        "OPTIONS": {"connect_timeout": 3, "prepare_threshold": 3, **dict(parse_qsl(parts.query))},
    }

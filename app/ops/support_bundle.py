"""What helps to find a fault, in one archive that can be given away: no prompt, no document, no name, no secret.

It holds what is known by name to be harmless, and of logs our own lines alone, each field by field.
"""

import io
import json
import platform
import re
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from app.audit.services import Verb, audit
from app.catalog.models import Backend, Deployment

LINES = 2_000
_SHOWN_SETTINGS = (
    "ALLOW_UNLIMITED_SPEND", "CURRENCY", "DATABASE_THREADS", "DEBUG", "DRAIN_SECONDS", "EMBEDDING_DIMENSION",
    "EMBEDDING_MODEL", "INFERENCE_CONTEXT_WINDOW", "INFERENCE_KIND", "INFERENCE_MODEL", "INFERENCE_SLOTS",
    "INSTALLATION_ZONE", "LOG_LEVEL", "QUEUE_WAIT_SECONDS", "RATE_KEY_REQUESTS", "RATE_KEY_TOKENS", "UPLOAD_MAX_BYTES",
)  # fmt: skip
_SECRET_SETTINGS = (
    "SECRET_KEY", "DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "INFERENCE_API_KEY", "EMBEDDING_API_KEY",
    "METRICS_TOKEN", "EMAIL_HOST_PASSWORD",
)  # fmt: skip
_FIELDS = ("time", "level", "logger", "message", "request_id", "trace_id")
_FRAME = re.compile(
    r'File "[^"]*?((?:app|retrieval|inference_client|site-packages)/[^"]+)", line (\d+), in (\w+)'
)
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Gone|Failed|Exit|Interrupt)\b)", re.MULTILINE)
_HIDDEN = (
    re.compile(r"tsr_[\w-]{10,}"),
    re.compile(r"(?i)bearer\s+\S+"),
    re.compile(r"://[^/@\s:]*:[^/@\s]+@"),
    re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    # What a message quotes may be what somebody typed.
    re.compile(r"[`'\"“„][^`'\"”“]{3,}[`'\"”“]"),
)


def bundle_write(target: Path) -> list[str]:
    """Write the archive (tar, gzip), readable by its owner alone; returns the names in it."""
    names = []
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode=0o600)
    with tarfile.open(target, "w:gz") as archive:
        for name, text in _parts():
            content = _scrubbed(text).encode()
            info = tarfile.TarInfo(f"tessera-support/{name}")
            info.size, info.mtime = len(content), int(time.time())
            archive.addfile(info, io.BytesIO(content))
            names.append(name)
    audit(Verb.EXPORT, object_kind="support bundle")
    return names


def _parts() -> Iterator[tuple[str, str]]:
    yield "machine.json", _json(_machine())
    yield "packages.txt", "\n".join(sorted(f"{d.name}=={d.version}" for d in distributions())) + "\n"
    yield "settings.json", _json({name: getattr(settings, name, None) for name in _SHOWN_SETTINGS})
    yield "database.json", _json(_database())
    yield "servers.json", _json(_servers())
    for log in sorted((Path(settings.DATA_DIR) / "logs").glob("*.log")):
        yield f"logs/{log.name}", "\n".join(log_lines(log)) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, default=str) + "\n"


def _machine() -> Mapping[str, Any]:
    return {"python": platform.python_version(), "system": platform.platform(), "machine": platform.machine()}


def _database() -> Mapping[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version()")
        (version,) = cursor.fetchone()
        cursor.execute(
            "SELECT relname, n_live_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables ORDER BY relname"
        )
        tables = {name: {"rows": rows, "bytes": size} for name, rows, size in cursor.fetchall()}
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return {
        "version": version,
        "tables": tables,
        "migrations_missing": [f"{migration.app_label}.{migration.name}" for migration, _ in plan],
    }


def _servers() -> list[Mapping[str, Any]]:
    """Kinds and figures; a name or an address may tell whose it is, so neither is here."""
    fields = ("purpose", "enabled", "slots", "context_window", "max_output_tokens", "tokenizer", "clearance")
    return [
        {
            "kind": backend.kind,
            "tls": urlsplit(backend.base_url).scheme == "https",
            "leaves_premises": backend.leaves_premises,
            "enabled": backend.enabled,
            "has_key": bool(backend.secret),
            "deployments": list(Deployment.objects.filter(backend=backend).values(*fields)),
        }
        for backend in Backend.objects.order_by("id")
    ]


def log_lines(log: Path) -> Iterator[str]:
    """Our own lines at the end of a log, field by field; of an exception where it was raised and its class."""
    for line in log.read_bytes()[-4_000_000:].decode(errors="replace").splitlines()[-LINES:]:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "logger" in said:
            kept = {name: said[name] for name in _FIELDS if name in said}
            kept["message"] = hide(str(said.get("message", "")))
            if "exception" in said:
                kept["exception"] = list(_traced(str(said["exception"])))
            yield json.dumps(kept, ensure_ascii=False)


def _traced(text: str) -> Iterable[str]:
    yield from (f"{path}:{number} {name}" for path, number, name in _FRAME.findall(text))
    yield from _RAISED.findall(text)


def _scrubbed(text: str) -> str:
    """Without what must not be given away, should it have got into a line after all."""
    for secret in _secrets():
        text = text.replace(secret, "[hidden]")
    return text


def _secrets() -> Iterator[str]:
    yield from settings.FIELD_KEYS
    for name in _SECRET_SETTINGS:
        value = str(getattr(settings, name, "") or "")
        password = urlsplit(value).password if "://" in value else value
        if password and len(password) >= 6:
            yield password


def hide(message: str) -> str:
    """A log message without keys, passwords, addresses of people and quotations."""
    for pattern in _HIDDEN:
        message = pattern.sub("[hidden]", message)
    return message

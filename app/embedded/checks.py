"""`doctor`'s view of a running installation: the parts that hold data. One small function for each check.

A check answers with one sentence: what is there, or what is wrong and what to do about it.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from celery import Celery
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import OperationalError as BrokerError

from app.billing.selectors import price_currencies
from app.common.redis_door import Unavailable, sync_redis
from inference_client.tokens import TokenizerFileError, counter
from retrieval.errors import StoreAway
from retrieval.stores import store

State = Literal["ok", "failed", "skipped"]
LOW_DISK = 1_000_000_000
_OLDEST_VECTOR = (0, 7)
"""The first pgvector with halfvec."""


@dataclass(frozen=True, slots=True)
class Check:
    """One result."""

    name: str
    state: State
    message: str


def passed(name: str, message: str) -> Check:
    """It works; `message` is a fact worth knowing."""
    return Check(name, "ok", message)


def failed(name: str, message: str) -> Check:
    """It does not; `message` says what is wrong and what to do."""
    return Check(name, "failed", message)


def skipped(name: str, message: str) -> Check:
    """It could not be asked, because something else failed."""
    return Check(name, "skipped", message)


def _place() -> str:
    parts = settings.DATABASES["default"]
    return f"{parts['HOST'] or 'a local socket'}:{parts['PORT'] or 5432}"


def database() -> Check:
    """Whether the application's role can log in."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version')")
            (version,) = cursor.fetchone()
    except DatabaseError as exc:
        reason = str(exc).strip().splitlines()[0]
        return failed(
            "database", f"No connection to {_place()} ({reason}); start it, or correct DATABASE_URL."
        )
    return passed("database", f"PostgreSQL {version} at {_place()}.")


def extension() -> Check:
    """Whether pgvector is installed and new enough."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return failed("pgvector", "The extension is missing; as a superuser run: CREATE EXTENSION vector;")
    if tuple(int(part) for part in row[0].split(".")[:2]) < _OLDEST_VECTOR:
        return failed(
            "pgvector", f"Version {row[0]} has no halfvec; update it: ALTER EXTENSION vector UPDATE;"
        )
    return passed("pgvector", f"Version {row[0]}.")


def migrations() -> Check:
    """Whether the schema is that of this program."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        first = missing[0][0]
        return failed(
            "migrations",
            f"{len(missing)} are missing, {first.app_label}.{first.name} first; run `python manage.py migrate` "
            "as the owner of the tables.",
        )
    return passed("migrations", "The schema is up to date.")


def role() -> Check:
    """Whether the application runs without the right to change its own tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, r.rolsuper, EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public' "
            "AND tableowner = current_user) FROM pg_roles r WHERE r.rolname = current_user"
        )
        name, is_super, owns = cursor.fetchone()
    if is_super or owns:
        what = "is a superuser" if is_super else "owns the tables"
        return failed(
            "database role",
            f"{name} {what}, so a fault could change the ledger; let DATABASE_URL name a role with data rights "
            "only, and DATABASE_OWNER_URL the owner.",
        )
    return passed("database role", f"{name} can change data, not tables.")


def documents() -> Check:
    """Whether the database and the stored originals belong together."""
    originals = store().where("")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM retrieval_document")
        (rows,) = cursor.fetchone()
    try:
        has_files = next(store().keys(), None) is not None
    except StoreAway as exc:
        return failed(
            "documents", f"{exc.message} Check ORIGINALS_BUCKET, ORIGINALS_S3_ENDPOINT and its keys."
        )
    if has_files and not rows:
        return failed(
            "documents",
            f"{originals} holds originals but the database knows no document: this is another or an empty "
            "database; correct DATABASE_URL or restore a backup.",
        )
    if rows and not has_files:
        return failed(
            "documents",
            f"The database knows {rows} documents but {originals} is empty; put the originals back, or correct "
            f"{'ORIGINALS_BUCKET' if settings.ORIGINALS_BUCKET else 'ORIGINALS_DIR'}.",
        )
    return passed("documents", f"{rows} in the database, originals in {originals}.")


def currency() -> Check:
    """Whether prices are in the installation's currency."""
    others = [code for code in price_currencies() if code != settings.CURRENCY]
    if others:
        return failed(
            "currency",
            f"CURRENCY is {settings.CURRENCY}, but prices in force are in {', '.join(others)}: they count as unknown, "
            "so their models are refused where money is limited. Set CURRENCY back, or set those prices anew; limits "
            "in money keep their numbers.",
        )
    return passed("currency", f"All prices are in {settings.CURRENCY}.")


def broker() -> Check:
    """Whether Valkey or Redis answers, and never throws queued work away."""
    try:
        client = sync_redis()
        client.ping()
        policy = client.info("memory").get("maxmemory_policy")
    except Unavailable as exc:
        reason = str(exc).strip() or type(exc).__name__
        return failed("broker", f"Valkey does not answer ({reason}); start it, or correct REDIS_URL.")
    if policy not in (None, "noeviction"):
        return failed("broker", f"maxmemory-policy is {policy}, so queued work can vanish; set noeviction.")
    return passed("broker", "Valkey answers and evicts nothing.")


def queues_named() -> list[str]:
    """Every queue that tasks are sent to."""
    return sorted(settings.QUEUES)


def queues(celery: Celery) -> Iterable[Check]:
    """Whether each queue has a worker."""
    try:
        answers = celery.control.inspect(timeout=3).active_queues() or {}
    except (*Unavailable, BrokerError) as exc:
        yield failed("queues", f"The broker could not be asked ({type(exc).__name__}); see the check above.")
        return
    served = {queue["name"] for worker in answers.values() for queue in worker}
    for name in queues_named():
        if name in served:
            yield passed(f"queue {name}", "A worker serves it.")
        else:
            yield failed(
                f"queue {name}",
                f"No worker serves it, so its work waits; start one: celery -A app.celery worker -Q {name}",
            )


def tokenizer_files() -> Iterable[Check]:
    """Whether counting before a call works offline."""
    for name in ("o200k_base", "cl100k_base"):
        try:
            counter(name).count("ready")
        except TokenizerFileError as exc:
            yield failed(f"tokenizer {name}", str(exc))
        else:
            yield passed(f"tokenizer {name}", "Its file is there and has the published hash.")


def disk() -> Iterable[Check]:
    """Whether there is room for documents and logs."""
    for name, folder in (("data", Path(settings.DATA_DIR)), ("originals", Path(settings.ORIGINALS_DIR))):
        place = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(place).free
        text = f"{free / 1e9:.1f} GB free at {folder}"
        if free < LOW_DISK:
            yield failed(f"disk {name}", f"Only {text}; free some space, or move the directory.")
        else:
            yield passed(f"disk {name}", f"{text}.")

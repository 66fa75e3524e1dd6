"""Runs the checks in order. What cannot be asked because something below it failed is said to be skipped."""

from collections.abc import Callable, Iterable, Iterator

from celery import Celery

from app.embedded import checks, checks_models, checks_web
from app.embedded.checks import Check, skipped

Single = Callable[[], Check]
_ON_DATABASE: tuple[tuple[str, Single], ...] = (
    ("pgvector", checks.extension),
    ("migrations", checks.migrations),
    ("database role", checks.role),
)
_ON_SCHEMA: tuple[tuple[str, Single], ...] = (
    ("documents", checks.documents),
    ("currency", checks.currency),
    ("embedder", checks_models.embedder),
)


def doctor(celery: Celery, *, production: bool) -> Iterator[Check]:
    """Every check, one after the other; nothing raises for what it finds."""
    found = checks.database()
    yield found
    works = found.state == "ok"
    schema: list[Check] = []
    for check in _after(works, _ON_DATABASE, "The database does not answer."):
        schema.append(check)
        yield check
    migrated = works and all(check.state == "ok" for check in schema if check.name == "migrations")
    yield from _after(migrated, _ON_SCHEMA, "The database is not ready.")
    yield from checks_models.chat() if migrated else [skipped("chat server", "The database is not ready.")]
    brokered = checks.broker()
    yield brokered
    if brokered.state == "ok" or "evict" in brokered.message:
        yield from checks.queues(celery)
    else:
        yield skipped("queues", "The broker does not answer.")
    yield from checks.tokenizer_files()
    yield from checks.disk()
    yield checks_web.public_url()
    if production:
        yield from _production(migrated)


def _production(migrated: bool) -> Iterator[Check]:
    yield from checks_web.secrets()
    yield from checks_web.production_settings()
    yield checks_web.smtp()
    last = (("clock", checks_web.clock), ("streaming", checks_web.streaming))
    yield from _after(migrated, last, "The database is not ready.")


def _after(works: bool, wanted: Iterable[tuple[str, Single]], reason: str) -> Iterator[Check]:
    for name, check in wanted:
        yield check() if works else skipped(name, reason)

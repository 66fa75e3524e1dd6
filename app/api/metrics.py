"""Prometheus' text: what this process counted, and what the database and the broker say when asked.

What is asked for is kept for some seconds, so that many who scrape cost as much as one. A figure that cannot be known
now is left out, or is -1 where its absence would hide a queue.
"""

import json
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Count, Min
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from app.audit.models import Verb
from app.audit.selectors import last_at
from app.billing.operating import BooksState, books_state
from app.chat.models import Turn, TurnState
from app.chat.runs import runs_here
from app.common.cache import remembered
from app.common.clock import now
from app.common.meters import REGISTRY
from app.common.redis_door import Unavailable, sync_redis
from app.gate.health import circuits_measure
from retrieval.models import Document, Status

KEPT_SECONDS = 5.0
_UNKNOWN = -1.0


def metrics_text() -> str:
    """Everything, in Prometheus' text form."""
    circuits_measure()
    own = generate_latest(REGISTRY).decode()
    return own + generate_latest(_Installation()).decode()


class _Installation:
    """Stands for a registry whose metrics are read anew."""

    def collect(self) -> Iterable[Metric]:
        return _installation()


@remembered(KEPT_SECONDS)
def _installation() -> list[Metric]:
    return [*_work(), *_documents(), *_queues(), *_books(books_state()), *_machine()]


def _gauge(name: str, help_text: str, value: float | None, **labels: str) -> Metric:
    """One figure, or a family without any where it is unknown."""
    family = GaugeMetricFamily(name, help_text, labels=tuple(labels))
    if value is not None:
        family.add_metric(tuple(labels.values()), value)
    return family


def _family(name: str, help_text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=(label,))
    for text, value in values:
        family.add_metric((text,), value)
    return family


def _age(moment: datetime | None) -> float:
    """Seconds since then; 0 where there is nothing."""
    return max(0.0, (now() - moment).total_seconds()) if moment else 0.0


def _work() -> Iterator[Metric]:
    running = Turn.objects.filter(state=TurnState.RUNNING).count()
    yield _gauge("tessera_turns_running", "Turns that are being answered, in all processes.", running)
    yield _gauge("tessera_turns_running_here", "Turns that are being answered by this process.", runs_here())
    threads = settings.DATABASE_THREADS
    yield _gauge(
        "tessera_database_threads", "Threads that async code's calls to the database share.", threads
    )


def _documents() -> Iterator[Metric]:
    counted = dict(Document.objects.values_list("status").annotate(n=Count("pk")))
    yield _family(
        "tessera_documents", "Documents by status.", "status", [(s, counted.get(s, 0)) for s in Status.values]
    )
    oldest = Document.objects.filter(status=Status.QUEUED).aggregate(at=Min("queued_at"))["at"]
    yield _gauge(
        "tessera_documents_oldest_queued_seconds", "Age of the document that waits longest.", _age(oldest)
    )
    since = now() - timedelta(hours=1)
    failed = Document.objects.filter(status=Status.FAILED, updated_at__gt=since).count()
    yield _gauge("tessera_documents_failed_last_hour", "Documents that failed within the last hour.", failed)


def _queues() -> Iterator[Metric]:
    seen = {name: _queue(name) for name in settings.QUEUES}
    yield _family(
        "tessera_queue_length",
        "Tasks waiting; -1 is unknown.",
        "queue",
        [(q, n) for q, (n, _) in seen.items()],
    )
    yield _family(
        "tessera_queue_oldest_seconds",
        "Age of the task that waits longest.",
        "queue",
        [(q, age) for q, (_, age) in seen.items() if age is not None],
    )


def _queue(name: str) -> tuple[float, float | None]:
    """(length, age of the oldest task); what cannot be read is unknown."""
    try:
        client = sync_redis()
        length, oldest = client.llen(name), client.lindex(name, -1)
    except Unavailable:
        return _UNKNOWN, None
    if oldest is None:
        return float(length), 0.0
    try:
        sent_at = json.loads(oldest)["headers"]["sent_at"]
        return float(length), max(0.0, time.time() - float(sent_at))
    except (ValueError, KeyError, TypeError):
        return float(length), None


def _books(books: BooksState) -> Iterator[Metric]:
    yield _gauge("tessera_reservations_open", "Holds that have not ended.", books.open)
    yield _gauge(
        "tessera_ledger_lag_seconds",
        "How long the longest overdue hold should have been booked.",
        books.lag_seconds,
    )
    yield _gauge(
        "tessera_estimated_share",
        "Share of the entries of the last hour whose tokens no server told.",
        books.estimated_share,
    )
    yield _gauge(
        "tessera_overshoot_entries", "Entries of the last hour above what was held.", books.overshoot
    )
    yield _family(
        "tessera_outbox", "Entries that webhooks have not taken.", "state", sorted(books.outbox.items())
    )
    yield _gauge(
        "tessera_outbox_lag_seconds", "Age of the oldest that still waits.", books.outbox_lag_seconds
    )


def _machine() -> Iterator[Metric]:
    backup = last_at(Verb.BACKUP)
    yield _gauge(
        "tessera_memory_blocks_here",
        "Blocks of memory that Python uses in this process: they grow for good where it leaks. Resident memory also "
        "keeps what is free between them.",
        sys.getallocatedblocks(),
    )
    yield _gauge(
        "tessera_backup_age_seconds",
        "Since the last `manage.py backup`; absent when there never was one.",
        _age(backup) if backup else None,
    )
    folder = next(
        p for p in (Path(settings.ORIGINALS_DIR), *Path(settings.ORIGINALS_DIR).parents) if p.exists()
    )
    usage = shutil.disk_usage(folder)
    yield _gauge("tessera_disk_free_bytes", "Free where originals are stored.", usage.free)
    yield _gauge("tessera_disk_bytes", "Size of the disk where originals are stored.", usage.total)

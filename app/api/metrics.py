"""A few figures in Prometheus' text form, read when asked for."""

from collections.abc import Iterable

from django.db.models import Count

from app.chat.models import Turn, TurnState
from app.common.redis_door import Unavailable, sync_redis
from retrieval.models import Document

QUEUES = ("default", "ingest")


def metrics_text() -> str:
    """Running turns, documents by status, and how long each queue is; -1 is unknown."""
    running = Turn.objects.filter(state=TurnState.RUNNING).count()
    statuses = Document.objects.values_list("status").annotate(n=Count("pk")).order_by("status")
    lines = [
        *_gauge("tessera_turns_running", "Turns that are being answered.", [("", running)]),
        *_gauge("tessera_documents", "Documents by status.", [(f'{{status="{s}"}}', n) for s, n in statuses]),
        *_gauge("tessera_queue_length", "Tasks waiting.", [(f'{{queue="{q}"}}', _length(q)) for q in QUEUES]),
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, help_text: str, values: Iterable[tuple[str, int]]) -> list[str]:
    return [
        f"# HELP {name} {help_text}",
        f"# TYPE {name} gauge",
        *(f"{name}{label} {n}" for label, n in values),
    ]


def _length(queue: str) -> int:
    try:
        return int(sync_redis().llen(queue))
    except Unavailable:
        return -1

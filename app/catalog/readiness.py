"""What does not work although this process does: named, without taking the process out of service.

A chat without documents needs no embedder and no worker, so neither makes `/readyz` refuse. The pages for those who
run the installation show the same words.
"""

import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from django.conf import settings

from app.catalog.models import Deployment
from app.catalog.selectors import targets
from app.common.cache import remembered
from app.common.queues import clock_runs, queues_served
from app.common.redis_door import Unavailable

BROKER_AWAY = "The broker (Valkey) does not answer."
_CONNECT_SECONDS = 1.0
_PORTS = {"http": 80, "https": 443}
_PURPOSES = {
    Deployment.Purpose.EMBEDDING.value: ("embedder", "so documents can be neither searched nor added"),
    Deployment.Purpose.CHAT.value: ("chat server", "so its models answer nothing"),
}


def parts_away() -> list[Mapping[str, str]]:
    """Each part that does not answer now, with a sentence. Errors: redis_door.Unavailable."""
    return [*_servers(), *_queues(), *_clock()]


def parts_away_words() -> list[str]:
    """The sentences alone, for a page; the broker's own when it is the broker."""
    try:
        return [part["message"] for part in parts_away()]
    except Unavailable:
        return [*(part["message"] for part in _servers()), BROKER_AWAY]


def _servers() -> Iterator[Mapping[str, str]]:
    for purpose, (part, means) in _PURPOSES.items():
        addresses = {target.base_url: target.backend_name for target in targets(purpose)}
        for url, name in addresses.items():
            if not _listens(url):
                yield {"part": part, "message": f"{name} does not answer, {means}. Start it, or see its log."}


def _queues() -> Iterator[Mapping[str, str]]:
    for name, served in queues_served(settings.QUEUES).items():
        if not served:
            yield {
                "part": f"queue {name}",
                "message": f"No worker for queue {name}, so its work waits. Start one: "
                f"celery -A app.celery worker -Q {name}",
            }


def _clock() -> Iterator[Mapping[str, str]]:
    if not clock_runs():
        yield {
            "part": "beat",
            "message": "The clock (beat) does not run, so nothing is swept, summed up or issued. Start one: "
            "celery -A app.celery beat",
        }


@remembered(5.0)
def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection(
            (str(parts.hostname), parts.port or _PORTS.get(parts.scheme, 80)), timeout=_CONNECT_SECONDS
        ).close()
    except OSError:
        return False
    return True

"""The Celery application: ingestion, sweeping, roll-ups. Turns never run here."""

import logging
import os
import time
from typing import Any

from celery import Celery, bootsteps
from celery.signals import beat_init, before_task_publish, celeryd_after_setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
# Django's checks load every page; `migrate` has run them, and a worker that comes back is a quarter sooner without.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from app.common.queues import EVERY_SECONDS, clock_claim, queues_claim
from app.common.redis_door import Unavailable

log = logging.getLogger(__name__)
_YIELDING = 10
"""Of 19: a tenth of a core against somebody who wants all of it, and all of one that is free."""


class QueuePresence(bootsteps.StartStopStep):
    """Says which queues this worker serves for as long as it takes messages: a consumer that hangs falls silent."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        self._tell(consumer)
        self._timer = consumer.timer.call_repeatedly(EVERY_SECONDS, self._tell, (consumer,))

    def stop(self, consumer: Any) -> None:
        self._timer.cancel()

    def _tell(self, consumer: Any) -> None:
        try:
            queues_claim(consumer.app.amqp.queues.consume_from, consumer.hostname)
        except Unavailable:
            log.warning("The broker does not answer: it cannot be told which queues are served.")


@celeryd_after_setup.connect
def _reading_yields(instance: Any, **_: Any) -> None:
    """A worker that only reads documents lets everything else go first, with all that it starts: people wait for
    answers, nobody for the next page.
    """
    if all(name.startswith("ingest") for name in instance.app.amqp.queues.consume_from):
        os.nice(_YIELDING)


@before_task_publish.connect
def _sent_at_note(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Say in each message when it was sent, whichever way it is, so that a queue can tell how old it is."""
    if headers is not None:
        headers["sent_at"] = time.time()


@beat_init.connect
def _clock_tells(**_: Any) -> None:
    """From now on this process, the clock, says that it runs with whatever it sends: the most frequent every 5 s."""
    before_task_publish.connect(_clock_told)


def _clock_told(**_: Any) -> None:
    try:
        clock_claim()
    except Unavailable:
        log.warning("The broker does not answer: it cannot be told that the clock runs.")


app = Celery("tessera")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(QueuePresence)

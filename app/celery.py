"""The Celery application: ingestion, sweeping, roll-ups. Turns never run here."""

import logging
import os
import time
from typing import Any

from celery import Celery, bootsteps
from celery.signals import before_task_publish

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")

from app.common.queues import EVERY_SECONDS, queues_claim
from app.common.redis_door import Unavailable

log = logging.getLogger(__name__)


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


@before_task_publish.connect
def _sent_at_note(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Say in each message when it was sent, whichever way it is, so that a queue can tell how old it is."""
    if headers is not None:
        headers["sent_at"] = time.time()


app = Celery("tessera")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(QueuePresence)

"""The Celery application: ingestion, sweeping, roll-ups. Turns never run here."""

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from celery import Celery, Task, bootsteps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")

from app.common.queues import EVERY_SECONDS, queues_claim
from app.common.redis_door import Unavailable

if TYPE_CHECKING:
    _Task = Task[Any, Any]
else:
    _Task = Task

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


class TimedTask(_Task):
    """Says in each message when it was sent, so that a queue can tell how old it is."""

    def apply_async(self, *args: Any, **options: Any) -> Any:
        options["headers"] = {**(options.get("headers") or {}), "sent_at": time.time()}
        return super().apply_async(*args, **options)


app = Celery("tessera", task_cls="app.celery:TimedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(QueuePresence)

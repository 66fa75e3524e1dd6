"""Background work of the gate."""

from celery import shared_task

from app.gate import learning


@shared_task(ignore_result=True)
def counts_learn() -> None:
    learning.counts_learn()

"""Background work of the chat: ends turns that a dead process left, finishes erasures."""

from celery import shared_task

from app.chat import erasing, retention, sweep, timings


@shared_task(ignore_result=True)
def turns_sweep() -> None:
    sweep.turns_sweep()


@shared_task(ignore_result=True)
def erasures_repeat() -> None:
    erasing.erasures_repeat()


@shared_task(ignore_result=True)
def timings_prune() -> None:
    timings.timings_prune()


@shared_task(ignore_result=True)
def retention_run() -> None:
    retention.retention_run()

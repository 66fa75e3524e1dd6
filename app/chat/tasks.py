"""Background work of the chat: ends turns that a dead process left."""

from celery import shared_task

from app.chat import sweep


@shared_task(ignore_result=True)
def turns_sweep() -> None:
    sweep.turns_sweep()

"""Celery's way in."""

from celery import shared_task

from app.api import services


@shared_task(name="app.api.tasks.idempotency_prune", ignore_result=True)
def idempotency_prune() -> int:
    """Remove idempotency keys older than a day."""
    return services.idempotency_prune()

"""Celery's way in."""

from celery import shared_task

from app.api import jobs, services


@shared_task(name="app.api.tasks.idempotency_prune", ignore_result=True)
def idempotency_prune() -> int:
    """Remove idempotency keys older than a day."""
    return services.idempotency_prune()


@shared_task(name="app.api.tasks.jobs_tell", ignore_result=True)
def jobs_tell() -> int:
    """Tell webhooks of jobs that have ended. Returns how many events were taken."""
    return jobs.jobs_tell()


@shared_task(name="app.api.tasks.jobs_prune", ignore_result=True)
def jobs_prune() -> int:
    """Forget events that were given up long ago. Returns how many."""
    return jobs.jobs_prune()

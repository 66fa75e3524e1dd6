"""Background work of billing."""

from celery import shared_task

from app.billing import services


@shared_task(name="app.billing.tasks.reservations_sweep")
def reservations_sweep() -> int:
    """End the holds of processes that died. Returns how many."""
    return len(services.reservations_sweep())

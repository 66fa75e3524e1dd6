"""Background work of billing."""

from celery import shared_task

from app.billing import credit, services


@shared_task(name="app.billing.tasks.reservations_sweep")
def reservations_sweep() -> int:
    """End the holds of processes that died. Returns how many."""
    return len(services.reservations_sweep())


@shared_task(name="app.billing.tasks.credits_lapse")
def credits_lapse() -> int:
    """Take back the unspent part of prepaid credit that has lapsed. Returns of how many grants."""
    return credit.credits_lapse()

"""Background work of billing."""

from celery import shared_task

from app.billing import alerting, credit, late, outbox, rollups, services, statements


@shared_task(name="app.billing.tasks.reservations_sweep")
def reservations_sweep() -> int:
    """End the holds of processes that died. Returns how many."""
    return len(services.reservations_sweep())


@shared_task(name="app.billing.tasks.credits_lapse")
def credits_lapse() -> int:
    """Take back the unspent part of prepaid credit that has lapsed. Returns of how many grants."""
    return credit.credits_lapse()


@shared_task(name="app.billing.tasks.outbox_send")
def outbox_send() -> int:
    """Tell webhooks of new ledger entries. Returns how many were taken."""
    return outbox.outbox_send()


@shared_task(name="app.billing.tasks.provisioned_book")
def provisioned_book() -> int:
    """Book the hours of our own servers that have ended. Returns how many."""
    return late.provisioned_book()


@shared_task(name="app.billing.tasks.statements_issue")
def statements_issue() -> int:
    """Draft statements of months that are over, issue those whose grace is over. Returns how many were issued."""
    statements.statements_draft()
    return len(statements.statements_issue_due())


@shared_task(name="app.billing.tasks.alerts_run")
def alerts_run() -> int:
    """Tell of budgets that have passed a threshold. Returns how many alerts were told."""
    return alerting.alerts_run()


@shared_task(name="app.billing.tasks.rollups_fold")
def rollups_fold() -> int:
    """Add new entries up in the roll-ups, and make what an update has brought. Returns how many entries."""
    count = rollups.rollups_fold()
    rollups.rollups_build()
    return count

"""Background work of the catalog: looks at the servers' load."""

from celery import shared_task

from app.catalog import telemetry


@shared_task(ignore_result=True)
def loads_scrape() -> None:
    telemetry.loads_scrape()

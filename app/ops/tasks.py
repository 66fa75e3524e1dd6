"""Background work that spans apps."""

from uuid import UUID

from celery import shared_task

from app.ops import exports


@shared_task(ignore_result=True)
def export_make(export_id: str) -> None:
    exports.export_make(export_id=UUID(export_id))


@shared_task(ignore_result=True)
def exports_sweep() -> int:
    return exports.exports_sweep()

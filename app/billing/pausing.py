"""The switch that pauses everything that costs money. Each turn of it is a row, and rows are only added."""

from datetime import datetime

from django.db import transaction

from app.audit.services import Verb, audit
from app.billing.errors import SpendingPaused
from app.billing.models import Pause
from app.common.clock import now


def spending_pause(*, set_by: str, reason: str = "") -> None:
    """From the next hold on, calls that cost money are refused; those that run finish and are booked."""
    _turn(paused=True, set_by=set_by, reason=reason)


def spending_resume(*, set_by: str, reason: str = "") -> None:
    """Lift the pause."""
    _turn(paused=False, set_by=set_by, reason=reason)


def spending_refused() -> SpendingPaused | None:
    """What a call that costs money is told while the pause is in force; None while there is none."""
    last = Pause.objects.order_by("-id").first()
    return SpendingPaused(last.reason) if last is not None and last.paused else None


def spending_paused_since() -> datetime | None:
    """When the pause that is in force began; None while there is none."""
    last = Pause.objects.order_by("-id").first()
    return last.created_at if last is not None and last.paused else None


def _turn(*, paused: bool, set_by: str, reason: str) -> None:
    with transaction.atomic():
        last = Pause.objects.order_by("-id").first()
        if (last is not None and last.paused) is not paused:
            Pause.objects.create(paused=paused, set_by=set_by, reason=reason[:400], created_at=now())
            audit(
                Verb.SUSPEND, object_kind="spending", after="paused" if paused else "resumed", reason=reason
            )

"""Alerts when a budget reaches its thresholds or a call used more than was held: noticed and sent off the way of every
call, each once.

A unique row (of window and threshold, of team and hour) decides that there is one alert. Of several thresholds that
one look finds passed, the highest is told. Mail goes once; a webhook may hear twice after a crash, under the same id.
"""

import json
import logging
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from app.billing.alert_words import Saying, budget_saying, overshoot_saying
from app.billing.models import BudgetAlert, OvershootAlert, Telling, Webhook
from app.billing.people import mail
from app.common.clock import now
from app.common.errors import AppError
from app.common.outbound import Outbound, send
from app.common.signing import signed_headers

log = logging.getLogger(__name__)
MOST_TRIES = 20
MAIL = "mail"
T = TypeVar("T", bound=Telling)


def alerts_run(*, limit: int = 100) -> int:
    """Note what has been passed and tell of it. Returns how many alerts were told."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_alerts_note(), billing_overshoots_note()")
    passed = BudgetAlert.objects.select_related("window__budget")
    return _tell_all(passed, budget_saying, limit) + _tell_all(
        OvershootAlert.objects.all(), overshoot_saying, limit
    )


def _tell_all(alerts: QuerySet[T], saying: Callable[[T], Saying | None], limit: int) -> int:
    waiting = alerts.filter(told_at=None, attempts__lt=MOST_TRIES).order_by("created_at")
    return sum(
        _tell(alerts, alert_id, saying) for alert_id in list(waiting.values_list("id", flat=True)[:limit])
    )


def _tell(alerts: QuerySet[T], alert_id: UUID, saying: Callable[[T], Saying | None]) -> bool:
    with transaction.atomic():
        alert = (
            alerts.select_for_update(skip_locked=True, of=("self",)).filter(id=alert_id, told_at=None).first()
        )
        if alert is None:
            return False
        if (words := saying(alert)) is not None:
            _send(alert, words)
        alert.attempts += 1
        alert.told_at = None if alert.left else now()
        alert.save(update_fields=["attempts", "told_at", "told", "left"])
    return alert.told_at is not None


def _send(alert: Telling, words: Saying) -> None:
    """To every channel that has not had it; what fails stays in `left`."""
    left = []
    if MAIL not in alert.told:
        mail(words.people, subject=words.subject, text=words.text)
        # Tried once: a second mail about the same thing is worse than one that a mail server lost.
        alert.told.append(MAIL)
    body = json.dumps(words.body).encode()
    hooks = Webhook.objects.filter(Q(team_id=None) | Q(team_id=words.team_id), open=True).order_by("id")
    for webhook in hooks:
        if str(webhook.id) not in alert.told:
            if _post(webhook, str(alert.id), body):
                alert.told.append(str(webhook.id))
            else:
                left.append(str(webhook.id))
    alert.left = left


def _post(webhook: Webhook, message_id: str, body: bytes) -> bool:
    headers = signed_headers(
        secret=webhook.plain_secret, message_id=message_id, at=int(now().timestamp()), body=body
    )
    request = Outbound(url=webhook.url, method="POST", headers=headers, body=body)
    try:
        return 200 <= async_to_sync(send)(request).status < 300
    except AppError as exc:
        log.warning(
            "An alert did not reach a webhook.", extra={"data": {"webhook": webhook.name, "why": exc.message}}
        )
        return False

"""Alerts when a budget reaches its thresholds: noticed and sent off the way of every call, each once.

The unique row of window and threshold decides that there is one alert. Of several thresholds that one look finds
passed, the highest is told. Mail goes once; a webhook may hear twice after a crash, under the same id.
"""

import json
import logging
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from app.billing.models import BudgetAlert, Webhook
from app.billing.naming import ids_of, whom
from app.billing.people import mail, told_of
from app.billing.wording import amount_words
from app.common.clock import now
from app.common.errors import AppError
from app.common.outbound import Outbound, send
from app.common.signing import signed_headers

log = logging.getLogger(__name__)
MOST_TRIES = 20
MAIL = "mail"


def alerts_run(*, limit: int = 100) -> int:
    """Note what has been passed and tell of it. Returns how many alerts were told."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_alerts_note()")
    waiting = BudgetAlert.objects.filter(told_at=None, attempts__lt=MOST_TRIES).order_by("created_at")
    return sum(_tell(alert_id) for alert_id in list(waiting.values_list("id", flat=True)[:limit]))


def alert_message(alert: BudgetAlert) -> tuple[str, str]:
    """Subject and text of the mail."""
    window = alert.window
    budget = window.budget
    amounts = [amount_words(x, window.unit, settings.CURRENCY) for x in (alert.used, alert.limit)]
    percent = f"{alert.ratio.normalize() * 100:f} %"
    what = f"{budget.name or 'limit'} of {whom(window.subject)}"
    resets = budget.period != "lifetime"
    until = f"It resets at {window.ends_at:%Y-%m-%d %H:%M} UTC." if resets else "It does not reset."
    then = "Further calls are refused." if budget.hard else "It only warns; calls go on."
    end = f" {then}" if alert.ratio >= 1 else ""
    return (
        f"{percent} of a limit is used: {what}",
        f"{amounts[0]} of {amounts[1]} ({percent} or more) of the {budget.period} {what} is used.{end} {until}\n",
    )


def _tell(alert_id: UUID) -> bool:
    with transaction.atomic():
        alert = (
            BudgetAlert.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("window__budget")
            .filter(id=alert_id, told_at=None)
            .first()
        )
        if alert is None:
            return False
        if not BudgetAlert.objects.filter(window=alert.window, ratio__gt=alert.ratio).exists():
            _send(alert)
        alert.attempts += 1
        alert.told_at = None if alert.left else now()
        alert.save(update_fields=["attempts", "told_at", "told", "left"])
    return alert.told_at is not None


def _send(alert: BudgetAlert) -> None:
    """To every channel that has not had it; what fails stays in `left`."""
    left = []
    if MAIL not in alert.told:
        subject, text = alert_message(alert)
        mail(told_of(alert.window.subject), subject=subject, text=text)
        # Tried once: a second mail about the same thing is worse than one that a mail server lost.
        alert.told.append(MAIL)
    body = json.dumps(_body(alert)).encode()
    team = ids_of(alert.window.subject).get("team_id")
    hooks = Webhook.objects.filter(Q(team_id=None) | Q(team_id=team), open=True).order_by("id")
    for webhook in hooks:
        if str(webhook.id) not in alert.told:
            if _post(webhook, str(alert.id), body):
                alert.told.append(str(webhook.id))
            else:
                left.append(str(webhook.id))
    alert.left = left


def _body(alert: BudgetAlert) -> dict[str, object]:
    window = alert.window
    return {
        "type": "budget.alert",
        "id": str(alert.id),
        "budget_id": str(window.budget_id),
        "limit_id": str(window.id),
        "scope": window.budget.scope,
        "covers": whom(window.subject),
        "unit": window.unit,
        "ratio": f"{alert.ratio.normalize():f}",
        "used": f"{alert.used.normalize():f}",
        "limit": f"{alert.limit.normalize():f}",
        "currency": settings.CURRENCY if window.unit == "money" else None,
        "at": alert.created_at.isoformat().replace("+00:00", "Z"),
    }


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

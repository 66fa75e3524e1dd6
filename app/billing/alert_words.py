"""What an alert says: in a mail, and in the body of a webhook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from app.accounts.models import User
from app.billing.models import BudgetAlert, OvershootAlert
from app.billing.naming import ids_of, whom
from app.billing.people import deciders_of, told_of
from app.billing.wording import amount_words
from app.common.formatting import count


@dataclass(frozen=True, slots=True)
class Saying:
    """One alert as it is sent."""

    people: Sequence[User]
    team_id: UUID | None
    """Whose webhooks hear it besides those of the installation."""
    subject: str
    text: str
    body: Mapping[str, object]


def budget_saying(alert: BudgetAlert) -> Saying | None:
    """None where a higher threshold of the same window is told instead."""
    same = BudgetAlert.objects.filter(window=alert.window, limit=alert.limit)
    if same.filter(ratio__gt=alert.ratio).exists():
        return None
    subject = alert.window.subject
    return Saying(told_of(subject), ids_of(subject).get("team_id"), *_budget_mail(alert), _budget_body(alert))


def overshoot_saying(alert: OvershootAlert) -> Saying:
    """Told to those who may raise the payer's limit, and to staff, whose server it is."""
    subject = f"t:{alert.team_id}" if alert.team_id else "i"
    people = list(dict.fromkeys([*told_of(subject), *deciders_of("i")]))
    return Saying(people, alert.team_id, *_overshoot_mail(alert), _overshoot_body(alert))


def _budget_mail(alert: BudgetAlert) -> tuple[str, str]:
    window = alert.window
    budget = window.budget
    amounts = [amount_words(x, window.unit, settings.CURRENCY) for x in (alert.used, alert.limit)]
    percent = f"{(alert.ratio * 100).normalize():f} %"
    what = f"{budget.name or 'limit'} of {whom(window.subject)}"
    resets = budget.period != "lifetime"
    until = f"It resets at {window.ends_at:%Y-%m-%d %H:%M} UTC." if resets else "It does not reset."
    then = "Further calls are refused." if budget.hard else "It only warns; calls go on."
    end = f" {then}" if alert.ratio >= 1 else ""
    return (
        f"{percent} of a limit is used: {what}",
        f"{amounts[0]} of {amounts[1]} ({percent} or more) of the {budget.period} {what} is used.{end} {until}\n",
    )


def _overshoot_mail(alert: OvershootAlert) -> tuple[str, str]:
    calls = "A call" if alert.calls == 1 else f"{count(alert.calls)} calls"
    who = _payer(alert)
    money = _money(alert.price, alert.held_price)
    tokens = f"{count(alert.used_tokens)} tokens where at most {count(alert.held_tokens)} were held"
    text = (
        f"{calls} of {who} used more than was held, in the hour from {alert.hour:%Y-%m-%d %H:%M} UTC. The first was of "
        f"{alert.price_key}: {tokens}{money}. It is booked in full, and further calls are refused while a limit is "
        "passed. Usually the server ignores its output cap or counts otherwise than it says; an administrator can look "
        "at it under /admin, Reservations.\n"
    )
    return f"More was used than was held: {who}", text


def _payer(alert: OvershootAlert) -> str:
    return f"team {whom(f't:{alert.team_id}')}" if alert.team_id else "the installation"


def _money(price: Decimal | None, held: Decimal | None) -> str:
    if price is None or held is None:
        return ""
    used, most = (amount_words(x, "money", settings.CURRENCY) for x in (price, held))
    return f", {used} where {most} was held"


def _budget_body(alert: BudgetAlert) -> dict[str, object]:
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


def _overshoot_body(alert: OvershootAlert) -> dict[str, object]:
    return {
        "type": "budget.overshoot",
        "id": str(alert.id),
        "covers": _payer(alert),
        "team_id": str(alert.team_id) if alert.team_id else None,
        "hour": alert.hour.isoformat().replace("+00:00", "Z"),
        "calls": alert.calls,
        "reservation_id": str(alert.reservation_id),
        "model": alert.price_key,
        "held_tokens": alert.held_tokens,
        "used_tokens": alert.used_tokens,
        "held_price": None if alert.held_price is None else f"{alert.held_price.normalize():f}",
        "price": None if alert.price is None else f"{alert.price.normalize():f}",
        "currency": settings.CURRENCY,
        "at": alert.created_at.isoformat().replace("+00:00", "Z"),
    }

"""Writing limits: whoever may set one is decided by the caller (see `budget_rights`)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, Sum

from app.audit.services import Verb, audit
from app.billing.checks import check_limit, check_stored
from app.billing.models import Budget, BudgetWindow, LineState
from app.billing.subjects import subject_of
from app.billing.turns import turn_take
from app.billing.types import Period, Scope, Unit
from app.common.clock import now
from app.common.errors import InvalidInput

DEFAULT_INSTALLATION_LIMIT = Decimal(100)
DEFAULT_ALLOWANCE = Decimal(10)
"""A month, in the installation's currency; what a new installation starts with."""
ALERT_RATIOS = (Decimal("0.5"), Decimal("0.8"), Decimal(1))


def budget_set(  # noqa: PLR0913 - one keyword for each column
    *,
    scope: Scope,
    unit: Unit,
    limit: Decimal | int,
    period: Period,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    key_id: UUID | None = None,
    price_key: str = "",
    name: str = "",
    zone: str | None = None,
    hard: bool = True,
    alert_ratios: Sequence[Decimal] = ALERT_RATIOS,
    set_by: str = "",
    ceiling: Decimal | int | None = None,
) -> UUID:
    """Set a limit and return the budget's id; the same subject, unit, model and period again changes it at once.

    An id left out makes it the default of every team, person or key without one of its own (allowance: of every person
    in every team, or of every person in `team_id`). A limit counts what is held after it was set; changed in
    mid-window it keeps what was spent and what was added for that window alone. Another zone starts new windows, in
    which what the old ones had used is used already.
    `ceiling`: how high the team's owner may go; None leaves it. Errors: InvalidInput.
    """
    zone = zone or settings.INSTALLATION_ZONE
    check_limit(limit, unit, zone)
    check_stored(scope, unit, period, price_key)
    subject = _subject(scope, team_id=team_id, account_id=account_id, key_id=key_id)
    place = {"subject": subject, "unit": unit, "price_key": price_key, "period": period}
    ratios = [f"{ratio:f}" for ratio in alert_ratios]
    values = {"limit": limit, "name": name, "hard": hard, "alert_ratios": ratios, "set_by": set_by}
    return _write(
        place | {"scope": scope, "zone": zone}, values | ({} if ceiling is None else {"ceiling": ceiling})
    )


def _subject(scope: Scope, **ids: UUID | None) -> str:
    try:
        return subject_of(scope, **ids)
    except ValueError as exc:
        raise InvalidInput(str(exc)) from exc


def _write(place: dict[str, Any], values: dict[str, Any]) -> UUID:
    """Change the row of that place, or make it; windows that are open take the new limit."""
    same = Budget.objects.filter(
        active=True, **{k: v for k, v in place.items() if k not in {"scope", "zone"}}
    )
    with transaction.atomic():
        turn_take(f"budget:{place['subject']}")
        budget = same.filter(zone=place["zone"]).first()
        _note(place, before=budget, after=values["limit"])
        if budget is None:
            replaced = same.first()
            same.update(active=False)
            budget = Budget.objects.create(**place, **values)
            if replaced is not None:
                _windows_rezone(before=replaced, after=budget)
            return budget.id
        Budget.objects.filter(id=budget.id).update(**values)
        BudgetWindow.objects.filter(budget=budget, ends_at__gt=now()).update(
            limit_snapshot=F("raised") + values["limit"]
        )
    return budget.id


def _note(place: Mapping[str, Any], *, before: Budget | None, after: object) -> None:
    """Into the audit log: the amount that was and the amount that is; nothing where it stays."""
    was = f"{before.limit.normalize():f}" if before else ""
    now_is = f"{Decimal(str(after)).normalize():f}" if after != "" else ""
    if was == now_is:
        return
    what = f"{place['unit']} a {place['period']}"
    audit(
        Verb.BUDGET_CHANGED,
        object_kind="budget",
        object_id=place["subject"],
        before=f"{was} {what}" if was else "",
        after=f"{now_is} {what}" if now_is else "",
    )


@transaction.atomic
def budget_remove(*, budget_id: UUID) -> None:
    """Stop checking a limit. Its windows stay, because reservations name them."""
    row = Budget.objects.filter(id=budget_id, active=True).first()
    if row is not None:
        Budget.objects.filter(id=budget_id).update(active=False)
        _note({"subject": row.subject, "unit": row.unit, "period": row.period}, before=row, after="")


def windows_carry(*, before: UUID, after: UUID) -> None:
    """Let a limit that takes the place of a default begin with what was used of that in the present period.

    Within the caller's transaction. What is held counts as used; no line moves, so the room is what shrinks.
    """
    # Whoever begins a window holds a share of this row: such a window is seen here, or not begun any more.
    Budget.objects.select_for_update(no_key=True).get(id=before)
    budget = Budget.objects.get(id=after)
    covered = Q(subject=budget.subject) | Q(subject__startswith=budget.subject.removesuffix("*"))
    windows = BudgetWindow.objects.select_for_update().filter(covered, budget=before, ends_at__gt=now())
    for window in windows.order_by("id"):
        ended = window.lines.filter(state=LineState.ENDED).aggregate(held=Sum("amount"), spent=Sum("spent"))
        used = window.spent + window.held - (ended["held"] or 0) + (ended["spent"] or 0)
        BudgetWindow.objects.create(
            budget=budget,
            subject=window.subject,
            unit=window.unit,
            price_key=window.price_key,
            starts_at=window.starts_at,
            ends_at=window.ends_at,
            limit_snapshot=budget.limit - used,
            raised=-used,
        )


_REZONE = """
INSERT INTO billing_budgetwindow
  (id, created_at, budget_id, subject, unit, price_key, starts_at, ends_at, limit_snapshot, raised, spent, held)
SELECT billing_uuid7(), clock_timestamp(), %s, w.subject, w.unit, w.price_key, t.starts_at, t.ends_at,
  %s + w.raised - u.used, w.raised - u.used, 0, 0
FROM billing_budgetwindow w
CROSS JOIN LATERAL billing_window_bounds(%s, %s, now()) t
CROSS JOIN LATERAL (
  SELECT w.spent + w.held + coalesce(sum(l.spent - l.amount), 0) AS used
  FROM billing_reservationline l WHERE l.window_id = w.id AND l.state = 1) u
WHERE w.budget_id = %s AND w.starts_at <= now() AND w.ends_at > now()
"""


def _windows_rezone(*, before: Budget, after: Budget) -> None:
    """Begin the windows of another zone with what the present ones have used: a new zone is no second limit.

    What is held counts as used, and stays so: no line moves, so the room is what shrinks.
    """
    windows = BudgetWindow.objects.select_for_update().filter(budget=before, ends_at__gt=now())
    list(windows.order_by("id").values_list("id"))
    with connection.cursor() as cursor:
        cursor.execute(_REZONE, [after.id, after.limit, after.period, after.zone, before.id])


def bootstrap_defaults() -> None:
    """Create the installation budget and the default member allowance unless there ever were any. Safe to repeat.

    A migration creates them too; this is for a database that was emptied.
    """
    defaults: tuple[tuple[Scope, str, str, Decimal], ...] = (
        ("installation", "i", "this installation", DEFAULT_INSTALLATION_LIMIT),
        ("allowance", "a:*:*", "your allowance", DEFAULT_ALLOWANCE),
    )
    for scope, subject, name, limit in defaults:
        if not Budget.objects.filter(subject=subject, unit="money").exists():
            budget_set(scope=scope, unit="money", limit=limit, period="month", name=name, set_by="setup")

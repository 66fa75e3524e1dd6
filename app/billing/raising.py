"""More room in one window: asked for after a refusal, given until the window ends.

What is given is added to the window alone, so it ends by itself. A limit that never resets is raised for good for
whom it covers, which the one who decides is told.
"""

from decimal import Decimal
from typing import Any, TypeAlias, cast
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from app.billing.checks import check_limit
from app.billing.models import BudgetWindow, LimitRequest
from app.billing.types import Payer, Unit
from app.common.clock import now
from app.common.errors import Conflict, InvalidInput, NotAllowed, NotFound

State = LimitRequest.State
Asked: TypeAlias = LimitRequest
"""A request for more, for those who may not import the table."""


def limit_request_create(
    *, window_id: UUID, payer: Payer, amount: Decimal | None = None, note: str = ""
) -> tuple[LimitRequest, bool]:
    """Ask for more in a window on the payer's way: (the request, whether it is new). Asking again while it is open
    changes what was asked.

    Errors: NotFound for a window that is over or covers somebody else; InvalidInput for an amount that is none.
    """
    window = _window_of(window_id, payer)
    if amount is not None:
        _check(amount, window)
    asker: dict[str, Any] = {"window": window, "account_id": payer.account_id, "key_id": payer.key_id}
    asked: dict[str, Any] = {"amount": amount, "note": note[:500], "team_id": payer.team_id}
    try:
        with transaction.atomic():
            return LimitRequest.objects.update_or_create(**asker, state=State.OPEN, defaults=asked)
    except IntegrityError:
        # Two at once: the other one has written it.
        LimitRequest.objects.filter(**asker, state=State.OPEN).update(**asked)
        return LimitRequest.objects.get(**asker, state=State.OPEN), False


def limit_requests() -> QuerySet[LimitRequest]:
    """Every request, the newest first."""
    return LimitRequest.objects.select_related("window__budget").order_by("-id")


def limit_request_get(request_id: UUID) -> LimitRequest:
    """Errors: NotFound."""
    row = limit_requests().filter(id=request_id).first()
    if row is None:
        raise NotFound("There is no such request.")
    return row


def limit_request_grant(
    *,
    request: LimitRequest,
    amount: Decimal | None,
    decided_by: str,
    ceiling: Decimal | None = None,
    answer: str = "",
) -> LimitRequest:
    """Raise the window by `amount` (None: as asked) until it ends, to no more than `ceiling`.

    Errors: InvalidInput without an amount; NotAllowed beyond the ceiling; Conflict when it was decided or its window
    is over.
    """
    with transaction.atomic():
        row = _open(request)
        granted = amount if amount is not None else row.amount
        if granted is None:
            raise InvalidInput("Say by how much to raise the limit.", detail={"field": "amount"})
        _check(granted, row.window)
        window_raise(window_id=row.window_id, amount=granted, ceiling=ceiling)
        return _decided(row, State.GRANTED, decided_by, granted, answer)


def limit_request_decline(*, request: LimitRequest, decided_by: str, answer: str = "") -> LimitRequest:
    """Leave the limit as it is. Errors: Conflict when it was decided or its window is over."""
    with transaction.atomic():
        return _decided(_open(request), State.DECLINED, decided_by, None, answer)


def window_raise(*, window_id: UUID, amount: Decimal, ceiling: Decimal | None = None) -> None:
    """Add to one window, in force with the next hold.

    Errors: NotAllowed beyond the ceiling; Conflict when the sum is no limit any more.
    """
    window = BudgetWindow.objects.filter(id=window_id)
    # In the statement itself: two raises at once would both have seen room.
    fits = Q(limit_snapshot__lt=10**13 - amount)
    if ceiling is not None:
        fits &= Q(limit_snapshot__lte=ceiling - amount)
    changed = window.filter(fits, ends_at__gt=now()).update(
        limit_snapshot=F("limit_snapshot") + amount, raised=F("raised") + amount
    )
    if not changed and ceiling is not None and window.filter(limit_snapshot__gt=ceiling - amount).exists():
        raise NotAllowed(
            "An administrator granted this team no more; only an administrator can raise it further."
        )
    if not changed:
        raise Conflict("This period is over, or the limit would be beyond all counting.")


def _window_of(window_id: UUID, payer: Payer) -> BudgetWindow:
    subjects = [
        "i",
        f"c:{payer.team_id}",
        f"t:{payer.team_id}",
        f"a:{payer.team_id}:{payer.account_id}",
        f"p:{payer.account_id}",
        f"k:{payer.key_id}",
    ]
    window = (
        BudgetWindow.objects.select_related("budget")
        .filter(id=window_id, subject__in=subjects, ends_at__gt=now())
        .first()
    )
    if window is None:
        raise NotFound("There is no such limit on your way, or its period is over.")
    return window


def _check(amount: Decimal, window: BudgetWindow) -> None:
    if amount <= 0:
        raise InvalidInput("More is an amount above 0.", detail={"field": "amount"})
    check_limit(amount, cast("Unit", window.budget.unit), window.budget.zone)


def _open(request: LimitRequest) -> LimitRequest:
    row = (
        LimitRequest.objects.select_for_update(of=("self",))
        .select_related("window__budget")
        .get(id=request.id)
    )
    if row.state != State.OPEN:
        raise Conflict(f"This request was {row.state} already.")
    if row.window.subject.startswith("c:"):
        raise Conflict("Prepaid credit grows by a grant alone; an administrator can give one.")
    if row.window.ends_at <= now():
        raise Conflict("The period of this limit is over; the new one has its whole limit again.")
    return row


def _decided(
    row: LimitRequest, state: str, decided_by: str, granted: Decimal | None, answer: str
) -> LimitRequest:
    row.state, row.decided_by, row.decided_at, row.granted = state, decided_by, now(), granted
    row.answer = answer[:500]
    row.save(update_fields=["state", "decided_by", "decided_at", "granted", "answer"])
    return row

"""Who may set which limit, and how high: staff all; a team's owner its pool; its admins allowances; key holders keys.

What staff granted binds those below: its `ceiling`, and in a personal team, whose only member owns it, the limit
itself. A row under a grant is changed where it stands and never removed, and one that takes the place of a default
counts on from what was used under that: otherwise setting a limit would be a way to begin it anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from app.accounts.models import Role
from app.accounts.selectors import MANAGING_ROLES, Caller, key_get, keys_of, members_of
from app.billing.budgets import ALERT_RATIOS, budget_remove, budget_set, windows_carry
from app.billing.models import Budget
from app.billing.naming import ids_of, is_personal
from app.billing.subjects import subject_of
from app.billing.types import Period, Scope, Unit
from app.common.errors import InvalidInput, NotAllowed, NotFound

BudgetRow: TypeAlias = Budget
"""A limit, for those who may not import the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A limit that somebody wants."""

    scope: Scope
    unit: Unit
    limit: Decimal
    period: Period
    team_id: UUID | None = None
    account_id: UUID | None = None
    key_id: UUID | None = None
    price_key: str = ""
    name: str = ""
    hard: bool = True

    def subject(self) -> str:
        """Errors: InvalidInput for ids that the scope does not take."""
        try:
            return subject_of(
                self.scope, team_id=self.team_id, account_id=self.account_id, key_id=self.key_id
            )
        except ValueError as exc:
            raise InvalidInput(str(exc), detail={"field": "scope"}) from exc


def may_set(caller: Caller, subject: str) -> bool:
    """Whether limits of this subject are the caller's to set."""
    if caller.is_staff:
        return not subject.startswith("c:")
    ids = ids_of(subject)
    match subject.partition(":")[0]:
        case "t" if "team_id" in ids:
            return caller.role_in(ids["team_id"]) == Role.OWNER
        case "a" if "team_id" in ids:
            return caller.role_in(ids["team_id"]) in MANAGING_ROLES
        # A key never changes what keys may spend, its own least of all.
        case "k" if caller.key_id is None and "key_id" in ids:
            return _key_is_seen(caller, ids["key_id"])
    return False


def is_bound(caller: Caller, subject: str) -> bool:
    """Whether only staff may go above what stands."""
    return not caller.is_staff and is_personal(subject)


def budgets_of(caller: Caller, *, team_id: UUID | None = None) -> list[Budget]:
    """Limits in force that the caller may set, of all their teams or of one, and the defaults these stand on."""
    rows = (
        Budget.objects.filter(active=True).exclude(scope="prepaid").order_by("scope", "subject", "unit", "id")
    )
    if caller.is_staff and team_id is None:
        return list(rows[:1000])
    managed = [team for team, role in caller.roles if role in MANAGING_ROLES and team_id in {None, team}]
    if caller.is_staff and team_id is not None:
        managed = [team_id]
    wanted = Q(subject__in=[f"k:{key.id}" for key in keys_of(caller)] if team_id is None else [])
    for team in managed:
        wanted |= Q(subject=f"t:{team}") | Q(subject__startswith=f"a:{team}:")
    if managed:
        wanted |= Q(subject__in=["t:*", "a:*:*"])
    return list(rows.filter(wanted)[:1000])


def grant_of(caller: Caller, subject: str, unit: str, price_key: str, period: str) -> Decimal | None:
    """The most that the caller may set; None: nothing was said, or the caller is staff.

    Errors: InvalidInput for a period that would set aside what staff granted for another.
    """
    if caller.is_staff:
        return None
    own = _rows([subject], unit, price_key)
    same = [row for row in own if row.period == period]
    if own:
        return _granted(caller, same[0], subject) if same else None
    above = _default_of(subject, unit, price_key)
    grants = [(row.period, _granted(caller, row, subject)) for row in above]
    bound = [(named, most) for named, most in grants if most is not None]
    if bound and period not in dict(bound):
        raise InvalidInput(
            f"What was granted here is counted by {bound[0][0]}; set a limit for that first, then one more.",
            detail={"field": "period"},
        )
    return dict(bound).get(period)


def budget_wish(*, caller: Caller, wish: Wish) -> Budget:
    """Set a limit as far as the caller may. Errors: NotFound, NotAllowed, InvalidInput."""
    subject = wish.subject()
    _allow(caller, subject)
    _check_person(wish)
    row = next((r for r in _rows([subject], wish.unit, wish.price_key) if r.period == wish.period), None)
    most = grant_of(caller, subject, wish.unit, wish.price_key, wish.period)
    if most is not None and wish.limit > most:
        raise NotAllowed(
            f"Staff granted {most.normalize():f} here; set at most that, or ask an administrator for more.",
            detail={"field": "limit", "most": f"{most.normalize():f}"},
        )
    above = [] if row or most is None else _default_of(subject, wish.unit, wish.price_key)
    stands = row or next((r for r in above if r.period == wish.period), None)
    with transaction.atomic():
        identity = budget_set(
            scope=wish.scope,
            unit=wish.unit,
            limit=wish.limit,
            period=wish.period,
            price_key=wish.price_key,
            name=wish.name or (stands.name if stands else ""),
            hard=wish.hard or (most is not None and stands is not None and stands.hard),
            set_by=f"user:{caller.user_id}" if caller.user_id else f"key:{caller.key_id}",
            ceiling=wish.limit if caller.is_staff else most,
            zone=stands.zone if stands else None,
            alert_ratios=[Decimal(str(x)) for x in stands.alert_ratios] if stands else ALERT_RATIOS,
            **ids_of(subject),
        )
        if stands is not None and stands is not row:
            windows_carry(before=stands.id, after=identity)
    return Budget.objects.get(id=identity)


def budget_get(*, caller: Caller, budget_id: UUID) -> Budget:
    """Errors: NotFound for one that is not the caller's to see."""
    row = Budget.objects.filter(id=budget_id, active=True).exclude(scope="prepaid").first()
    if row is None or not (may_set(caller, row.subject) or _is_seen(caller, row.subject)):
        raise NotFound("There is no such limit, or it is not yours to see.")
    return row


def budget_change(*, caller: Caller, budget_id: UUID, limit: Decimal) -> Budget:
    """Another amount for a limit that is there. Errors: NotFound, NotAllowed, InvalidInput."""
    row = budget_get(caller=caller, budget_id=budget_id)
    wish = Wish(
        scope=cast("Scope", row.scope),
        unit=cast("Unit", row.unit),
        limit=limit,
        period=cast("Period", row.period),
        price_key=row.price_key,
        hard=row.hard,
        **ids_of(row.subject),
    )
    return budget_wish(caller=caller, wish=wish)


def budget_drop(*, caller: Caller, budget_id: UUID) -> None:
    """Remove a limit. Errors: NotFound; NotAllowed when that would lift what staff granted."""
    row = budget_get(caller=caller, budget_id=budget_id)
    _allow(caller, row.subject)
    if not may_drop(caller, row):
        raise NotAllowed(
            "Staff granted this limit, so it cannot be removed; you can set it lower, or as high as it was granted."
        )
    budget_remove(budget_id=row.id)


def may_drop(caller: Caller, row: Budget) -> bool:
    """Whether the caller may remove it: what staff granted stays, so that nobody begins it anew."""
    return may_set(caller, row.subject) and (caller.is_staff or _granted(caller, row, row.subject) is None)


def _allow(caller: Caller, subject: str) -> None:
    if may_set(caller, subject):
        return
    team_id = ids_of(subject).get("team_id")
    if team_id is not None and caller.role_in(team_id) is None:
        raise NotFound("There is no such team, or you are not in it.")
    who = {
        "t": "An owner of the team sets its limits.",
        "a": "An admin or owner of the team sets allowances.",
        "k": "Whoever made the key, or an admin of its team, sets its limit, signed in and not with a key.",
    }.get(subject.partition(":")[0], "Only an administrator of this installation sets this limit.")
    raise NotAllowed(who)


def _check_person(wish: Wish) -> None:
    """An allowance is of somebody in the team."""
    if wish.scope == "allowance" and wish.team_id is not None and wish.account_id is not None:
        members = members_of(wish.team_id)
        if wish.account_id not in {member.user.account_id for member in members}:
            raise NotFound("There is no such person in this team.")


def _granted(caller: Caller, row: Budget, subject: str) -> Decimal | None:
    """What binds the caller in a row that stands for a subject."""
    own = caller.user_id is not None and row.set_by == f"user:{caller.user_id}"
    return row.limit if row.ceiling is None and not own and is_bound(caller, subject) else row.ceiling


def _default_of(subject: str, unit: str, price_key: str) -> list[Budget]:
    """The rows that hold for a subject without own ones: of its nearest default."""
    head, *parts = subject.split(":")
    nearer = [] if head != "a" or parts[1] == "*" else [f"a:{parts[0]}:*"]
    for default in [*nearer, ":".join([head, *("*" for _ in parts)])]:
        if default != subject and (rows := _rows([default], unit, price_key)):
            return rows
    return []


def _rows(subjects: Sequence[str], unit: str, price_key: str) -> list[Budget]:
    rows = Budget.objects.filter(active=True, subject__in=subjects, unit=unit, price_key=price_key)
    return list(rows.order_by("id"))


def _key_is_seen(caller: Caller, key_id: UUID) -> bool:
    try:
        return bool(key_get(caller, key_id))
    except NotFound:
        return False


def _is_seen(caller: Caller, subject: str) -> bool:
    """Seen although not to be set: a pool by the team's admins, a default by whoever manages a team."""
    managed = {team for team, role in caller.roles if role in MANAGING_ROLES}
    ids: dict[str, Any] = ids_of(subject)
    if subject in {"t:*", "a:*:*"}:
        return bool(managed)
    return subject.startswith("t:") and cast(UUID, ids.get("team_id")) in managed

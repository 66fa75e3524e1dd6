"""Ledger sums as a caller may see them: one's own, a team's for its admins, all of it for staff."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from app.accounts.models import ApiKey, Team, User
from app.accounts.selectors import Caller
from app.billing.selectors import spend, totals
from app.billing.types import GroupBy, SpendFilter, SpendRow
from app.catalog.models import Deployment
from app.common.errors import NotAllowed

GROUPS: tuple[GroupBy, ...] = ("day", "team", "person", "key", "model", "deployment", "kind")


_SHOWN = (
    "price",
    "cost",
    "entries",
    "requests",
    "input_tokens",
    "output_tokens",
    "estimated_price",
    "price_missing",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuestion:
    """What is asked of the ledger."""

    group_by: GroupBy
    from_: datetime | None
    to: datetime | None
    tz: str
    team_id: UUID | None
    """The whole of one team."""
    everything: bool
    """The whole installation."""


def usage_of(caller: Caller, question: UsageQuestion) -> dict[str, Any]:
    """Sums by group with names for people, and the sum of all. Cost is shown to staff only.

    Errors: NotAllowed, NotFound for a team the caller is not in.
    """
    scope: dict[str, Any] = {"from_": question.from_, "to": question.to} | _scope(caller, question)
    rows = spend(group_by=question.group_by, tz=question.tz, **scope)
    names = _names(question.group_by, {row.group for row in rows if isinstance(row.group, UUID)})
    items = [_item(row, names.get(row.group, _text(row.group))) for row in rows]
    total = _item(totals(**scope), None)
    if not caller.is_staff:
        for shown in (total, *items):
            shown["cost"] = None
    return {"group_by": question.group_by, "tz": question.tz, "items": items, "total": total, "next": None}


def _scope(caller: Caller, question: UsageQuestion) -> dict[str, Any]:
    if question.everything:
        if not caller.is_staff:
            raise NotAllowed("Only staff see the spend of the whole installation.")
        return {"team_id": question.team_id}
    if question.team_id is not None:
        caller.require_manager(question.team_id)
        return {"team_id": question.team_id}
    # A key of a team stands for no person: it sees what it used itself.
    return (
        {"account_id": caller.account_id}
        if caller.account_id
        else {"where": SpendFilter(key_id=caller.key_id)}
    )


def _item(row: SpendRow, name: str | None) -> dict[str, Any]:
    return {"group": _text(row.group), "name": name} | {field: getattr(row, field) for field in _SHOWN}


def _text(group: date | UUID | str | None) -> str | None:
    return None if group is None else str(group)


def _names(group_by: GroupBy, ids: set[UUID]) -> Mapping[object, str | None]:
    """Names by id; someone who was erased has none, and the id stands for itself."""
    match group_by:
        case "team":
            return dict(Team.objects.filter(id__in=ids).values_list("id", "name"))
        case "person":
            return {user.account_id: str(user) for user in User.objects.filter(account_id__in=ids)}
        case "key":
            return dict(ApiKey.objects.filter(id__in=ids).values_list("id", "name"))
        case "deployment":
            return {
                row.id: str(row) for row in Deployment.objects.filter(id__in=ids).select_related("backend")
            }
        case "day" | "model" | "kind":
            return {}

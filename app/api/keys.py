"""Making and changing keys: nobody hands out more than they hold."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from app.accounts.models import ApiKey
from app.accounts.selectors import Caller, team_of
from app.accounts.services import key_create, key_update
from app.billing.budgets import budget_set
from app.common.addresses import Network, network_of
from app.common.clock import now
from app.common.errors import InvalidInput, NotAllowed

DEFAULT_SCOPES = ("chat", "embed", "read", "write", "usage")


@transaction.atomic
def key_issue(  # noqa: PLR0913 - one keyword for each field of the route
    *,
    caller: Caller,
    name: str,
    kind: str = "personal",
    team: UUID | None = None,
    scopes: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    budget: Mapping[str, Any] | None = None,
    cost_centre: str = "",
    networks: Sequence[str] = (),
) -> tuple[ApiKey, str]:
    """A new key and its plain text.

    A personal key needs a role that may spend, a key of the team or a cost centre an admin.
    Errors: NotFound, NotAllowed, InvalidInput.
    """
    if _limited(caller):
        raise NotAllowed("This key has a limit of its own, so it makes no others. Sign in to make one.")
    payer = team_of(caller, team)
    if kind == "team" or cost_centre:
        caller.require_manager(payer.id)
    if kind == "personal" and caller.user_id is None:
        raise NotAllowed("A key of a team acts for no person, so it cannot make personal keys.")
    caller.require_spender(payer.id)
    wanted = scopes if scopes is not None else [s for s in DEFAULT_SCOPES if s in caller.scopes]
    given = {"scopes": wanted, "models_allowed": models, "expires_at": expires_at, "networks": networks}
    checked = _within(caller, given)
    row, plain = key_create(
        name=name,
        team_id=payer.id,
        user_id=caller.user_id if kind == "personal" else None,
        budget=_stored(budget),
        cost_centre=cost_centre,
        **checked,
    )
    _enforce(row, budget)
    return row, plain


@transaction.atomic
def key_change(*, caller: Caller, key: ApiKey, **changes: Any) -> ApiKey:
    """Change what is given of a key that `key_get` found. Errors: NotAllowed, InvalidInput."""
    if "models" in changes:
        changes["models_allowed"] = changes.pop("models")
    _within(caller, changes)
    if "cost_centre" in changes:
        caller.require_manager(key.team_id)
    budget = changes.get("budget")
    if changes.keys() & {"budget", "expires_at"} and (caller.key_id == key.id or _limited(caller)):
        raise NotAllowed("A key changes no limit that it is under, and not its own end. Sign in to do that.")
    if "budget" in changes:
        changes["budget"] = _replacing(key, budget)
    row = key_update(key=key, changes=changes)
    _enforce(row, budget)
    return row


def _limited(caller: Caller) -> bool:
    """Whether the caller is a key with a limit: what it gave another key, it could spend beyond that."""
    return (
        caller.key_id is not None and ApiKey.objects.filter(id=caller.key_id, budget__isnull=False).exists()
    )


def _within(caller: Caller, wanted: dict[str, Any]) -> dict[str, Any]:
    """The same values, once it is sure that the caller holds all of them."""
    caller.require_scope("write")
    held = caller.scopes | ({"staff"} if caller.is_staff else set())
    if excess := set(wanted.get("scopes") or ()) - held:
        raise NotAllowed(f"You cannot give what you do not hold: {', '.join(sorted(excess))}.")
    if caller.models_allowed is not None and "models_allowed" in wanted:
        models = wanted["models_allowed"]
        if models is None or not set(models) <= caller.models_allowed:
            allowed = ", ".join(sorted(caller.models_allowed))
            raise NotAllowed(f"This key is limited to some models, so a key it makes must be too: {allowed}.")
    if caller.networks and "networks" in wanted:
        _narrower(caller.networks, wanted["networks"])
    expires_at = wanted.get("expires_at")
    if expires_at is not None and expires_at <= now():
        raise InvalidInput("The key would expire in the past.", detail={"field": "expires_at"})
    return wanted


def _narrower(held: Sequence[str], wanted: Sequence[str]) -> None:
    """Errors: NotAllowed when an address of `wanted` lies outside `held`, or all addresses are wanted."""
    outer = [network_of(text) for text in held]
    inner = [network_of(text) for text in wanted]
    if not inner or not all(any(_contains(net, one) for net in outer) for one in inner):
        raise NotAllowed(
            f"This key is for some addresses only, so a key it makes must be too: {', '.join(held)}."
        )


def _contains(outer: Network, inner: Network) -> bool:
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _stored(budget: Mapping[str, Any] | None) -> dict[str, str] | None:
    return (
        None
        if budget is None
        else {
            name: f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
            for name, value in budget.items()
        }
    )


def _replacing(key: ApiKey, budget: Mapping[str, Any] | None) -> dict[str, str] | None:
    """The budget to store. What was spent is counted by unit and period, so a key keeps those it began with."""
    before, after = key.budget, _stored(budget)
    if before is not None and (
        after is None or any(before[part] != after[part] for part in ("unit", "period"))
    ):
        raise InvalidInput(
            "The limit of a key can be raised or lowered, but its unit and period stay. Make a new key instead.",
            detail={"field": "budget"},
        )
    return after


def _enforce(row: ApiKey, budget: Mapping[str, Any] | None) -> None:
    """Put the limit in force at billing."""
    if budget is None:
        return
    limit: Decimal = budget["limit"]
    if budget["unit"] != "money" and limit != limit.to_integral_value():
        raise InvalidInput(
            "A limit of tokens or requests is a whole number.", detail={"field": "budget.limit"}
        )
    budget_set(
        scope="key",
        unit=budget["unit"],
        limit=limit,
        period=budget["period"],
        key_id=row.id,
        name=f"key “{row.name}”",
        set_by=f"user:{row.user_id}" if row.user_id else f"team:{row.team_id}",
    )

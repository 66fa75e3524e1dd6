"""Reads of billing. Callers hand down the permission as plain filters (`team_id`, `account_id`)."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.billing.types import GroupBy, LimitState, Payer, Price, Side, SpendRow


def spend(
    *,
    group_by: GroupBy,
    from_: datetime | None = None,
    to: datetime | None = None,
    tz: str = "UTC",
    team_id: UUID | None = None,
    team_ids: Sequence[UUID] | None = None,
    account_id: UUID | None = None,
    key_id: UUID | None = None,
    deployment_id: UUID | None = None,
    call_kind: str | None = None,
) -> list[SpendRow]:
    """Ledger sums by group for `from_` ≤ effective_at < `to`; days are days of `tz`."""
    raise NotImplementedError


def limits_remaining(payer: Payer, *, price_key: str | None = None) -> list[LimitState]:
    """Every limit on the payer's way (optionally for one model), as it stands now."""
    raise NotImplementedError


def price_current(
    price_key: str, *, side: Side = "price", team_id: UUID | None = None, mode: str = "standard"
) -> Price | None:
    """The price in force now, or None when it is not known."""
    raise NotImplementedError

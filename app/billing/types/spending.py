"""Sums of the ledger over time and owners, as the dashboard asks for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

SUMS = (
    "entries",
    "requests",
    "price",
    "cost",
    "estimated_price",
    "estimated",
    "unpriced",
    "uncosted",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
)
"""The columns that roll-ups add up, in their order."""
MONEY_SUMS = frozenset({"price", "cost", "estimated_price"})
"""Those that are amounts; the others are counts."""
_OF_MODELS = frozenset({"deployment_id", "model", "call_kind"})
CUBES: Mapping[str, frozenset[str]] = {
    "house": _OF_MODELS,
    "team": _OF_MODELS | {"team_id", "collections"},
    "payer": frozenset({"team_id", "account_id", "key_id"}),
    "": _OF_MODELS | {"team_id", "collections", "account_id", "key_id"},
}
"""The owners that roll-ups tell apart, the fewest rows first: each is kept by day and by month, as `teamday`, the last
by quarter of an hour too. A reader takes the first that has all it asks for."""
Dimension = Literal[
    "hour",
    "day",
    "week",
    "month",
    "year",
    "team",
    "person",
    "key",
    "model",
    "deployment",
    "collection",
    "kind",
    "thread",
]
Group = datetime | date | UUID | str | tuple[UUID, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendScope:
    """Which entries; None: no condition. `from_` ≤ effective_at < `to`."""

    from_: datetime
    to: datetime
    team_ids: tuple[UUID, ...] | None = None
    """Any of these, which is how permission is handed down; empty: none at all."""
    team_id: UUID | None = None
    account_id: UUID | None = None
    key_id: UUID | None = None
    deployment_id: UUID | None = None
    model: str | None = None
    kind: str | None = None
    collection_id: UUID | None = None
    thread_id: UUID | None = None
    flag: Literal["estimated", "unpriced", "overshoot", "late", "disputed", ""] = ""
    """Entries marked so; asked of single entries alone, never of sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendSum:
    """Entries added up. Money in the installation's currency."""

    groups: tuple[Group, ...] = ()
    """One for each dimension asked for."""
    entries: int = 0
    requests: int = 0
    """Turns: reservations with a chat charge."""
    price: Decimal = field(default=Decimal(0))
    cost: Decimal = field(default=Decimal(0))
    """Of the entries whose cost is known."""
    estimated_price: Decimal = field(default=Decimal(0))
    estimated: int = 0
    unpriced: int = 0
    """Entries without a known price: in no sum of money."""
    uncosted: int = 0
    """Entries without a cost of their own: unknown, or paid by the hour."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input."""
    reasoning_tokens: int = 0
    """Of the output."""

    @property
    def margin(self) -> Decimal:
        """Price less known cost; where entries have no known cost, the most that it can be."""
        return self.price - self.cost

    def __add__(self, other: "SpendSum") -> "SpendSum":
        names = [f.name for f in fields(SpendSum) if f.name != "groups"]
        return SpendSum(**{name: getattr(self, name) + getattr(other, name) for name in names})

"""Sums of the ledger over time and owners, as the dashboard asks for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
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
Step = Literal["quarter", "day", "month"]
_OF_MODELS = frozenset({"deployment_id", "model", "call_kind"})
_OF_PAYERS = frozenset({"team_id", "account_id", "key_id"})
_ALL = _OF_MODELS | _OF_PAYERS | {"collections"}
GRAINS: Mapping[Step, Mapping[str, frozenset[str]]] = {
    "quarter": {"house15min": _OF_MODELS, "quarter": _ALL},
    "day": {
        "houseday": _OF_MODELS,
        "plainday": _OF_MODELS | {"team_id"},
        "teamday": _OF_MODELS | {"team_id", "collections"},
        "payerday": _OF_PAYERS,
        "day": _ALL,
    },
    "month": {
        "housemonth": _OF_MODELS,
        "plainmonth": _OF_MODELS | {"team_id"},
        "teammonth": _OF_MODELS | {"team_id", "collections"},
        "payermonth": _OF_PAYERS,
        "usermonth": _OF_MODELS | {"team_id", "account_id"},
        "month": _ALL,
    },
}
"""The sums over a quarter of an hour, a day and a month, and the owners that each tells apart, the fewest rows first. A
reader takes the first that has all it asks for."""
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
        return spend_total((self, other))


def spend_total(rows: Sequence[SpendSum]) -> SpendSum:
    """The exact sum of all, which belongs to no group."""
    return SpendSum(**{name: sum((getattr(row, name) for row in rows), _NOTHING[name]) for name in SUMS})


_NOTHING: Mapping[str, Any] = {name: Decimal(0) if name in MONEY_SUMS else 0 for name in SUMS}

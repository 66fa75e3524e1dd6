"""Limits, prices and sums."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.billing.types.words import CallKind, Period, Scope, Side, TierMode, Unit, is_exact, refuse_floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """One limit at one moment. Amounts are money in the installation's currency, tokens or requests."""

    scope: Scope
    unit: Unit
    limit: Decimal
    remaining: Decimal
    """Limit less spent and held, never below 0."""
    resets_at: datetime | None
    """None: lifetime."""
    hard: bool
    name: str = ""
    spent: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    period: Period = "month"
    price_key: str | None = None
    """Set when the limit counts one model only."""
    budget_id: UUID | None = None
    window_id: UUID | None = None
    """What a request for more names; None before anything was counted."""
    subject: str = ""
    """Whom it covers, see `subjects`."""
    zone: str = "UTC"
    needed: Decimal | None = None
    """In a refusal: what the call would have taken as asked; None: not known."""
    least: Decimal | None = None
    """And with the shortest answer worth giving."""

    def as_detail(self) -> dict[str, Any]:
        """The shape of a limit in an error's detail and in a pre-count."""
        return {
            "scope": self.scope,
            "name": self.name,
            "unit": self.unit,
            "limit": f"{self.limit:f}",
            "remaining": f"{self.remaining:f}",
            "resets_at": self.resets_at.isoformat().replace("+00:00", "Z") if self.resets_at else None,
            "hard": self.hard,
            "period": self.period,
            "zone": self.zone,
            "model": self.price_key,
            "limit_id": str(self.window_id) if self.window_id else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of one component from a prompt size upward."""

    component: str
    price: Decimal
    """Per `per_units`, at most 9 decimals."""
    per_units: int = 1_000_000
    """1, 1000 or 1,000,000."""
    min_prompt_tokens: int = 0
    """Whole prompt, cache included, from which this rate holds for the whole request."""

    def __post_init__(self) -> None:
        refuse_floats(self, "per_units", "min_prompt_tokens")
        if not is_exact(self.price) or self.price < 0:
            raise ValueError(
                f"The price of {self.component} must be a decimal of 0 or more, not {self.price!r}."
            )
        if self.price != round(self.price, 9):
            raise ValueError(f"The price of {self.component} has more than 9 decimals.")
        if self.per_units not in {1, 1_000, 1_000_000}:
            raise ValueError("A price is per 1, 1,000 or 1,000,000 units.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price version with its rates."""

    version_id: UUID
    price_key: str
    currency: str
    effective_from: datetime
    effective_to: datetime | None
    rates: tuple[Rate, ...]
    mode: str = "standard"
    side: Side = "price"
    team_id: UUID | None = None
    tier_mode: TierMode = "whole_request"
    factor: Decimal | None = None
    """The team's mark-up, which is in `rates` already; None: the price is general or the team's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a charge: quantity × unit price, exact."""

    component: str
    quantity: int
    rate: Rate
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    """Sums of ledger entries for one group."""

    group: date | UUID | str | None
    price: Decimal
    cost: Decimal | None
    """None where no entry has a known cost."""
    entries: int
    requests: int
    """Chat turns."""
    input_tokens: int
    output_tokens: int
    estimated_price: Decimal
    """The part of `price` that rests on estimates."""
    price_missing: int
    """Entries without a known price: they are in no sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendFilter:
    """Further conditions on ledger entries; None: no condition."""

    team_ids: tuple[UUID, ...] | None = None
    """Any of these teams; empty: none at all."""
    key_id: UUID | None = None
    deployment_id: UUID | None = None
    kind: CallKind | None = None
    price_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """A ledger entry with what is worth showing of its attempt."""

    id: UUID
    kind: str
    """charge, adjust, refund, grant, write_off."""
    effective_at: datetime
    recorded_at: datetime
    price: Decimal | None
    cost: Decimal | None
    currency: str
    price_missing: bool
    reservation_id: UUID | None
    team_id: UUID | None
    account_id: UUID | None
    key_id: UUID | None
    deployment_id: UUID | None
    turn_id: UUID | None
    call_kind: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    reasoning_tokens: int
    estimated: bool
    overshoot: bool
    late: bool
    ttft_ms: int | None
    total_ms: int | None

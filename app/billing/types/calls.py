"""A call before and after: payer, hold, attempts and how it was settled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.billing.types.money import LimitState
from app.billing.types.words import (
    INPUT_COMPONENTS,
    OUTPUT_COMPONENTS,
    CallKind,
    EndState,
    Outcome,
    UsageSource,
    is_exact,
    refuse_floats,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Who pays: one team, or the installation itself when `team_id` is None."""

    team_id: UUID | None
    account_id: UUID | None = None
    """The person's opaque account, `User.account_id`; the ledger knows people by nothing else."""
    user_id: UUID | None = None
    """For callers only: billing never stores it."""
    key_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What a call may cost at most, before it is sent."""

    reservation_id: UUID
    """UUIDv7 made by the caller: the same id again returns the same reservation."""
    payer: Payer
    kind: CallKind
    price_key: str
    input_tokens: int
    """Whole input, counted or estimated upward."""
    output_tokens: int = 0
    """The output cap asked for; `Held.output_tokens` is the one granted."""
    min_output_tokens: int | None = None
    """The cap may shrink to this (default: the smaller of `OUTPUT_FLOOR` and the cap)."""
    deployment_id: UUID | None = None
    fallback_price_keys: tuple[str, ...] = ()
    """Other routes the call may take; the dearest is held."""
    extra: tuple[tuple[str, int], ...] = ()
    """(price key, input tokens) of calls made besides under the same reservation, such as embedding the query."""
    mode: str = "standard"
    ttl_seconds: int = 900
    """The hold expires after this without a heartbeat."""
    expires_at: datetime | None = None
    """Instead of `ttl_seconds`."""
    effective_at: datetime | None = None
    """When the call counts (window, price); None: the database's clock."""
    dedupe_key: str = ""
    """Idempotency key, unique within the payer team; empty: none."""
    fingerprint: str = ""
    """Hash of the body behind `dedupe_key`; another one under the same key is a conflict."""
    turn_id: UUID | None = None
    thread_id: UUID | None = None
    """What the call belongs to, such as a conversation: opaque, for sums alone."""
    collections: tuple[UUID, ...] = ()
    """Those it may draw on or is made for: opaque, for sums alone."""
    request_id: str = ""

    def __post_init__(self) -> None:
        refuse_floats(self, "input_tokens", "output_tokens", "min_output_tokens", "ttl_seconds")


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the reader, with a code for programs."""

    code: str
    """output_cap_lowered or soft_limit_passed."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The reservation as granted."""

    reservation_id: UUID
    state: str
    """held; on a repeated call also how the reservation ended."""
    output_tokens: int
    """The cap to send upstream: without it the hold is a fiction."""
    shrunk: bool
    """The cap is lower than asked, because a limit has no room for more."""
    price: Decimal | None
    """Held at most; None when the price is not known."""
    currency: str
    effective_at: datetime
    expires_at: datetime
    replayed: bool = False
    soft: tuple[LimitState, ...] = ()
    """Soft limits this call goes beyond."""
    tight: tuple[LimitState, ...] = ()
    """Where the cap shrank: the limits that had no room for all that was asked."""
    notes: tuple[Note, ...] = ()
    """What the reader should know of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Disjoint token counts: each token in exactly one bucket, each bucket priced once, under its own name."""

    input: int = 0
    """Text read neither from nor into a cache."""
    cache_read: int = 0
    cache_write: int = 0
    """Written for minutes; also a write without a stated lifetime."""
    cache_write_mid: int = 0
    cache_write_long: int = 0
    cache_write_xlong: int = 0
    input_audio: int = 0
    input_image: int = 0
    output: int = 0
    """Text, without reasoning."""
    reasoning: int = 0
    output_audio: int = 0
    rejected_prediction: int = 0

    def __post_init__(self) -> None:
        refuse_floats(self, *INPUT_COMPONENTS, *OUTPUT_COMPONENTS)

    @classmethod
    def from_totals(
        cls,
        *,
        input_tokens: int,
        output_tokens: int,
        cache_read: int = 0,
        cache_write: int = 0,
        reasoning: int = 0,
    ) -> "Buckets":
        """From a whole input that includes the cache and a whole output that includes reasoning.

        Parts that exceed their whole are believed: the rest is then 0, and the sum shows the contradiction.
        """
        return cls(
            input=max(0, input_tokens - cache_read - cache_write),
            cache_read=cache_read,
            cache_write=cache_write,
            output=max(0, output_tokens - reasoning),
            reasoning=reasoning,
        )

    def quantities(self) -> dict[str, int]:
        """The buckets that are not empty, by component name."""
        return {n: q for n in (*INPUT_COMPONENTS, *OUTPUT_COMPONENTS) if (q := getattr(self, n))}

    @property
    def input_total(self) -> int:
        """Whole input, cache included: what a price tier is chosen by."""
        return sum(getattr(self, name) for name in INPUT_COMPONENTS)

    @property
    def output_total(self) -> int:
        """Whole output, reasoning included."""
        return sum(getattr(self, name) for name in OUTPUT_COMPONENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One upstream call, however it ended; retries, fallbacks and failures too."""

    number: int = 1
    """From 1, in the order of the calls."""
    kind: CallKind | None = None
    """None: the reservation's. Only attempts of the reservation's kind count as its tokens."""
    outcome: Outcome = "completed"
    buckets: Buckets = field(default_factory=Buckets)
    units: Mapping[str, int] = field(default_factory=dict)
    """Other priced components by name, such as tool calls or images."""
    billed: bool = True
    """False: the user does not pay for it (a retry that failed), its cost is still booked."""
    source: UsageSource = "server_final"
    estimated: bool = False
    estimate_reason: str = ""
    """no_usage, client_gone, stream_broken, backend_has_none, zero_implausible, sweeper."""
    price_key: str = ""
    """Empty: the reservation's."""
    deployment_id: UUID | None = None
    """None: the reservation's."""
    requested_model: str = ""
    """As the caller named it; the ledger shows this name."""
    served_model: str = ""
    upstream_id: str = ""
    finish_reason: str = ""
    finish_raw: str = ""
    error: str = ""
    local_input_tokens: int | None = None
    local_output_tokens: int | None = None
    tokenizer: str = ""
    raw_usage: Mapping[str, Any] | None = None
    """The server's usage block as received."""
    reported_cost: Decimal | None = None
    """What the provider says it cost, in `reported_currency`: kept as a witness, never booked."""
    reported_currency: str = "USD"
    ttft_ms: int | None = None
    total_ms: int | None = None
    queue_ms: int | None = None
    """In our own line, before it was sent."""
    itl_ms: float | None = None
    """Mean time between two output tokens, after the first."""
    prompt_facts: tuple[int, ...] | None = None
    """What our count saw of the prompt; see `inference_client.learned`."""
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.number) is not int or self.number < 1:
            raise ValueError("Attempt.number counts from 1.")
        refuse_floats(self, "local_input_tokens", "local_output_tokens", "ttft_ms", "total_ms", "queue_ms")
        if any(type(n) is not int or n < 0 for n in self.units.values()):
            raise ValueError("Attempt.units counts whole, non-negative units.")
        cost = self.reported_cost
        if cost is not None and not (is_exact(cost) and 0 <= cost < 10**13):
            raise ValueError("Attempt.reported_cost is an exact amount of 0 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the ledger, as settle booked it."""

    id: UUID
    attempt: int | None
    """Its number; 0 is the sweeper's estimate."""
    kind: str
    price: Decimal | None
    """None: no price known, which is not 0."""
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """A reservation that is to be ended, and how. See `app.billing.services.reservation_settle`."""

    reservation_id: UUID
    attempts: Sequence[Attempt] = ()
    state: EndState | None = None
    """None: settled when a billed attempt used anything, else released."""
    hold: Hold | None = None
    """Re-creates a reservation that a database crash forgot: give it whenever you have it."""
    by_sweeper: bool = False
    """An assumption about a process that seems dead; should it settle after all, its truth replaces this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """How a reservation ended."""

    reservation_id: UUID
    state: str
    """settled, released, or expired when the truth came after the hold had expired."""
    price: Decimal | None
    """None: at least one part has no known price."""
    cost: Decimal | None
    currency: str
    entries: tuple[Entry, ...]
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    price_missing: bool = False
    overshoot: bool = False
    late: bool = False
    recreated: bool = False
    replayed: bool = False

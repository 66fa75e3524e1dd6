"""What a caller hands to the gate: who pays, what for, at most how much, and which deployments may serve."""

from dataclasses import dataclass
from uuid import UUID

from app.billing.types import CallKind, Hold, Payer
from app.catalog.selectors import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """One logical call before it is made."""

    reservation_id: UUID
    payer: Payer
    kind: CallKind
    targets: tuple[Target, ...]
    """Deployments in order of preference; the next one is tried only while nothing has reached the user."""
    input_tokens: int
    """Whole input at most."""
    output_tokens: int = 0
    """Output cap asked for."""
    min_output_tokens: int | None = None
    embedding: Target | None = None
    """The deployment that will embed the query under this same reservation, if any."""
    query_tokens: int = 0
    """At most this many tokens go to it."""
    ttl_seconds: int = 900
    """How long the hold lasts unless a pulse renews it: as long as the call may take where there is no pulse."""
    rated: bool = False
    """Whether rate limits count it: what people and programs ask for, not what the machine does on its own."""
    turn_id: UUID | None = None
    thread_id: UUID | None = None
    """The conversation, for sums by it."""
    collections: tuple[UUID, ...] = ()
    """Those searched, or the one whose documents are embedded, for sums by them."""
    request_id: str = ""
    level: str = "private"
    """Privacy level of the whole turn: further calls under it go only where that may be seen."""

    @property
    def hold(self) -> Hold:
        """The plan as billing knows it: no model, no server, only price keys and counts."""
        first, *others = dict.fromkeys(target.price_key for target in self.targets)
        return Hold(
            reservation_id=self.reservation_id,
            payer=self.payer,
            kind=self.kind,
            price_key=first,
            fallback_price_keys=tuple(others),
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            min_output_tokens=self.min_output_tokens,
            deployment_id=self.targets[0].deployment_id,
            extra=((self.embedding.price_key, self.query_tokens),) if self.embedding else (),
            ttl_seconds=self.ttl_seconds,
            turn_id=self.turn_id,
            thread_id=self.thread_id,
            collections=self.collections,
            request_id=self.request_id,
        )

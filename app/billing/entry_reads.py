"""Single ledger entries, page by page, as the sums lead to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from app.billing.models import LedgerEntry, UsageAttempt
from app.billing.types.spending import SUMS, SpendScope, SpendSum

_DISPUTED = UsageAttempt.objects.filter(~Q(flags=[]))
_FLAGS: Mapping[str, Q] = {
    "": Q(),
    "estimated": Q(estimated=True),
    "unpriced": Q(price_missing=True),
    "overshoot": Q(overshoot=True),
    "late": Q(late=True),
    # Witnesses that say otherwise: see the flags of an attempt.
    "disputed": Q(
        reservation_id__in=_DISPUTED.values("reservation_id"), attempt_id__in=_DISPUTED.values("id")
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLine:
    """One entry as a page shows it: figures and owners, no content, for there is none."""

    id: UUID
    kind: str
    at: datetime
    price: Decimal | None
    cost: Decimal | None
    team_id: UUID | None
    account_id: UUID | None
    key_id: UUID | None
    deployment_id: UUID | None
    call_kind: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool
    estimate_reason: str
    overshoot: bool
    late: bool
    request_id: str
    turn_id: UUID | None
    reason: str
    flags: tuple[str, ...] = ()
    """Of its attempt: what somebody should look at."""

    @property
    def place(self) -> str:
        """Where the next page goes on after this one."""
        return f"{self.at.isoformat()}~{self.id}"


def entries_page(scope: SpendScope, *, after: str = "", limit: int = 100) -> tuple[list[EntryLine], str]:
    """Entries, the newest call first, and the place of the next page, empty on the last. A torn place begins anew."""
    rows = _entries(scope)
    place = _place(after)
    if place is not None:
        at, identity = place
        rows = rows.filter(Q(effective_at__lt=at) | Q(effective_at=at, id__lt=identity), effective_at__lte=at)
    found = list(rows.select_related("attempt").order_by("-effective_at", "-id")[: limit + 1])
    lines = [_line(entry) for entry in found[:limit]]
    return lines, lines[-1].place if len(found) > limit else ""


def entries_total(scope: SpendScope) -> SpendSum:
    """Their sum, one by one: for what roll-ups do not tell apart, such as one thread or what is marked.

    What is marked may be much, so of that only what stands on the entries themselves is summed: no turns, and no tokens
    that are a part of others.
    """
    ids, params = _entries(scope).values("id").query.sql_with_params()
    names = _OWN if scope.flag else SUMS
    rows = _ITSELF if scope.flag else "billing_spendfact"
    added = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {added} FROM {rows} WHERE id IN ({ids})", params)  # noqa: S608 - names are ours
        return SpendSum(**dict(zip(names, cursor.fetchone(), strict=True)))


_OWN = ("entries", "price", "cost", "uncosted", "input_tokens", "output_tokens")
_ITSELF = (
    "(SELECT id, 1 AS entries, price, cost, (cost IS NULL)::integer AS uncosted, input_tokens, output_tokens "
    "FROM billing_ledgerentry) e"
)


def _entries(scope: SpendScope) -> QuerySet[LedgerEntry]:
    conditions: dict[str, Any] = {
        "team_id__in": scope.team_ids,
        "team_id": scope.team_id,
        "account_id": scope.account_id,
        "key_id": scope.key_id,
        "deployment_id": scope.deployment_id,
        "model": scope.model,
        "call_kind": scope.kind,
        "thread_id": scope.thread_id,
        "collections__contains": [scope.collection_id] if scope.collection_id else None,
    }
    return LedgerEntry.objects.filter(
        _FLAGS[scope.flag],
        credit__isnull=True,
        effective_at__gte=scope.from_,
        effective_at__lt=scope.to,
        **{name: value for name, value in conditions.items() if value is not None},
    )


def _place(text: str) -> tuple[datetime, UUID] | None:
    at, _, identity = text.partition("~")
    try:
        instant = datetime.fromisoformat(at.replace(" ", "+"))
        return (instant, UUID(identity)) if instant.tzinfo else None
    except ValueError:
        return None


def _line(entry: LedgerEntry) -> EntryLine:
    attempt = entry.attempt
    return EntryLine(
        id=entry.id,
        kind=entry.kind,
        at=entry.effective_at,
        price=None if entry.price_missing and not entry.price else entry.price,
        cost=entry.cost,
        team_id=entry.team_id,
        account_id=entry.account_id,
        key_id=entry.key_id,
        deployment_id=entry.deployment_id,
        call_kind=entry.call_kind,
        model=entry.model,
        input_tokens=entry.input_tokens,
        output_tokens=entry.output_tokens,
        estimated=entry.estimated,
        estimate_reason=attempt.estimate_reason if attempt else "",
        overshoot=entry.overshoot,
        late=entry.late,
        request_id=attempt.request_id if attempt else "",
        turn_id=attempt.turn_id if attempt else None,
        reason=entry.reason,
        flags=tuple(attempt.flags) if attempt else (),
    )

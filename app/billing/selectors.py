"""Reads of billing. Callers hand down the permission as plain filters (`team_id`, `account_id`…)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from app.billing.models import LedgerEntry, PriceVersion
from app.billing.pricing import marked
from app.billing.types import (
    CallKind,
    EntryRow,
    GroupBy,
    LimitState,
    Payer,
    Price,
    Rate,
    Side,
    SpendFilter,
    SpendRow,
)
from app.billing.wire import limit_from
from app.common.clock import now

_COLUMNS = {
    "team": "team_id",
    "person": "account_id",
    "key": "key_id",
    "model": "model",
    "deployment": "deployment_id",
    "kind": "call_kind",
}
_NOTHING = SpendFilter()


def spend(  # noqa: PLR0913 - the shape of the usage route
    *,
    group_by: GroupBy,
    from_: datetime | None = None,
    to: datetime | None = None,
    tz: str = "UTC",
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    deployment_id: UUID | None = None,
    where: SpendFilter = _NOTHING,
) -> list[SpendRow]:
    """Ledger sums by group for `from_` ≤ effective_at < `to`; days are days of `tz`.

    Days come in order, other groups by price, the highest first. `where` narrows further.
    """
    key = TruncDate("effective_at", tzinfo=ZoneInfo(tz)) if group_by == "day" else F(_COLUMNS[group_by])
    if deployment_id is not None:
        where = replace(where, deployment_id=deployment_id)
    entries = _entries(from_, to, team_id, account_id, where)
    rows = [_spend_row(row) for row in entries.values(group=key).annotate(**_SUMS)]
    if group_by == "day":
        return sorted(rows, key=lambda row: str(row.group))
    return sorted(rows, key=lambda row: (-row.price, str(row.group)))


def totals(
    *,
    from_: datetime | None = None,
    to: datetime | None = None,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    where: SpendFilter = _NOTHING,
) -> SpendRow:
    """The same sums over everything, with group None."""
    return _spend_row({**_entries(from_, to, team_id, account_id, where).aggregate(**_SUMS), "group": None})


def ledger_rows(
    *,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    where: SpendFilter = _NOTHING,
    before: UUID | None = None,
    limit: int = 50,
) -> list[EntryRow]:
    """Entries, newest first; `before` is the id of the last one of the page before."""
    rows = _entries(None, None, team_id, account_id, where)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return [_entry_row(entry) for entry in rows.select_related("attempt").order_by("-id")[:limit]]


def entries_of(reservation_id: UUID) -> list[EntryRow]:
    """What was booked for one call, in the order of booking."""
    rows = LedgerEntry.objects.filter(reservation_id=reservation_id).select_related("attempt")
    return [_entry_row(entry) for entry in rows.order_by("id")]


def limits_remaining(
    payer: Payer,
    *,
    price_key: str | None = None,
    kind: CallKind | Literal["storage"] = "chat",
    at: datetime | None = None,
) -> list[LimitState]:
    """Every limit on the payer's way as it stands, widest scope first; `price_key` leaves out those of other models."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT budget_id, window_id, scope, subject, name, unit, price_key, period, zone, hard,
              amount AS "limit", spent, held, resets_at
            FROM billing_limits(%s, %s, %s, %s, %s, %s)
            ORDER BY array_position(
              ARRAY['installation', 'team', 'prepaid', 'allowance', 'person', 'key'], scope), unit, period
            """,
            [
                payer.team_id,
                payer.account_id,
                payer.key_id,
                None if price_key is None else [price_key],
                kind,
                at or now(),
            ],
        )
        names = [column.name for column in cursor.description]
        return [limit_from(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def price_currencies() -> list[str]:
    """The currencies that user prices in force, or to come, are in; more than `CURRENCY` when that was changed."""
    in_force = Q(effective_to=None) | Q(effective_to__gt=now())
    rows = PriceVersion.objects.filter(in_force, side="price").values_list("currency", flat=True)
    return sorted(set(rows.order_by("currency").distinct()))


def price_current(
    price_key: str,
    *,
    side: Side = "price",
    team_id: UUID | None = None,
    mode: str = "standard",
    at: datetime | None = None,
) -> Price | None:
    """The price in force as a team pays it (its own fixed price, or the general one with its factor); None: unknown."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT price_id, cost_id, factor FROM billing_versions(ARRAY[%s], %s, %s, %s)",
            [price_key, mode, team_id, at or now()],
        )
        price_id, cost_id, factor = cursor.fetchone()
    version = (
        PriceVersion.objects.filter(pk=price_id if side == "price" else cost_id)
        .prefetch_related("components")
        .first()
    )
    if version is None:
        return None
    price = _price(version)
    if side == "cost" or factor is None:
        return price
    return replace(price, rates=marked(price.rates, factor), factor=factor)


def price_billed(price_key: str, *, team_id: UUID | None = None) -> Price | None:
    """What a call would be billed by now, as `billing_reserve` sees it: one in a currency that was the installation's
    before says nothing in today's. None: unknown."""
    price = price_current(price_key, team_id=team_id)
    return price if price is not None and price.currency == settings.CURRENCY else None


def price_versions(price_key: str, *, side: Side = "price") -> list[Price]:
    """All versions of a price, newest first."""
    versions = PriceVersion.objects.filter(price_key=price_key, side=side).prefetch_related("components")
    return [_price(version) for version in versions.order_by("-effective_from")]


_SUMS: dict[str, Any] = {
    "price_sum": Sum("price"),
    "cost_sum": Sum("cost"),
    "entries": Count("id"),
    "requests": Count("reservation_id", distinct=True, filter=Q(call_kind="chat")),
    "input_sum": Sum("input_tokens"),
    "output_sum": Sum("output_tokens"),
    "estimated_sum": Sum("price", filter=Q(estimated=True)),
    "missing": Count("id", filter=Q(price_missing=True)),
}


def _entries(
    from_: datetime | None,
    to: datetime | None,
    team_id: UUID | None,
    account_id: UUID | None,
    where: SpendFilter,
) -> QuerySet[LedgerEntry]:
    conditions = {
        "effective_at__gte": from_,
        "effective_at__lt": to,
        "team_id": team_id,
        "account_id": account_id,
        "team_id__in": where.team_ids,
        "key_id": where.key_id,
        "deployment_id": where.deployment_id,
        "call_kind": where.kind,
        "price_key": where.price_key,
    }
    return LedgerEntry.objects.filter(
        # Prepaid credit that moves is nobody's use.
        credit__isnull=True,
        **{name: value for name, value in conditions.items() if value is not None},
    )


def _spend_row(row: Mapping[str, Any]) -> SpendRow:
    return SpendRow(
        group=row["group"],
        price=row["price_sum"] or Decimal(0),
        cost=row["cost_sum"],
        entries=row["entries"],
        requests=row["requests"],
        input_tokens=row["input_sum"] or 0,
        output_tokens=row["output_sum"] or 0,
        estimated_price=row["estimated_sum"] or Decimal(0),
        price_missing=row["missing"],
    )


def _entry_row(entry: LedgerEntry) -> EntryRow:
    attempt = entry.attempt
    return EntryRow(
        id=entry.id,
        kind=entry.kind,
        effective_at=entry.effective_at,
        recorded_at=entry.recorded_at,
        price=entry.price,
        cost=entry.cost,
        currency=entry.currency,
        price_missing=entry.price_missing,
        reservation_id=entry.reservation_id,
        team_id=entry.team_id,
        account_id=entry.account_id,
        key_id=entry.key_id,
        deployment_id=entry.deployment_id,
        turn_id=attempt.turn_id if attempt else None,
        call_kind=entry.call_kind,
        model=entry.model,
        input_tokens=entry.input_tokens,
        output_tokens=entry.output_tokens,
        cache_read_tokens=attempt.cache_read_tokens if attempt else 0,
        reasoning_tokens=attempt.reasoning_tokens if attempt else 0,
        estimated=entry.estimated,
        overshoot=entry.overshoot,
        late=entry.late,
        ttft_ms=attempt.ttft_ms if attempt else None,
        total_ms=attempt.total_ms if attempt else None,
    )


def _price(version: PriceVersion) -> Price:
    return price_of(
        version,
        [
            Rate(
                component=component.component,
                price=component.price,
                per_units=component.per_units,
                min_prompt_tokens=component.min_prompt_tokens,
            )
            for component in version.components.all()
        ],
    )


def price_of(version: PriceVersion, rates: Sequence[Rate]) -> Price:
    """A version as a value, with its rates."""
    return Price(
        version_id=version.id,
        price_key=version.price_key,
        currency=version.currency,
        effective_from=version.effective_from,
        effective_to=version.effective_to,
        rates=tuple(rates),
        mode=version.mode,
        side="cost" if version.side == "cost" else "price",
        team_id=version.team_id,
        tier_mode="marginal" if version.tier_mode == "marginal" else "whole_request",
    )

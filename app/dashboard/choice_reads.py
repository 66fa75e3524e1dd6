"""What the choice between models and servers rests on, from rows that were measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from app.billing.choosing import Room, fits
from app.billing.estimating import call_price
from app.billing.spending import spending
from app.billing.types.spending import SpendScope, SpendSum
from app.catalog.models import Deployment
from app.dashboard.trend import Month, break_even

BUSY_DAYS = 14
"""Days in which the busiest hour of a server is looked for."""
PROVISIONED = "provisioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """One model over whole months in a row."""

    model: str
    months: Sequence[Month]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """An own server beside what is paid by the token, over one span."""

    deployment_id: UUID
    per_hour: Decimal
    tokens_per_s: Decimal | None
    """Input and output together, that it can do: at its knee, else of its busiest hour; None: neither is known."""
    measured: bool
    """At the knee, by a load test; else it can do more than this."""
    used: Decimal | None
    """Part of what it can do that was asked of it, 0 to 1."""
    own_per_million: Decimal | None
    """What a million tokens came to."""
    managed_id: UUID
    managed_per_million: Decimal
    managed_whole: bool
    """Whether the cost of every call there is known; else a million cost more than that."""
    break_even_tokens: Decimal | None
    """An hour."""
    break_even: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Smaller:
    """Calls of a deployment that a cheaper one would have taken by their length."""

    deployment_id: UUID
    cheaper_id: UUID
    calls: int
    fitting: int
    price: Decimal
    """What those that fit were billed."""
    instead: Decimal
    """What they would have been billed there."""


def growing(*, zone: str, first: date, until: datetime, from_: datetime) -> list[Growing]:
    """Models by month from `first` on, the dearest first; months without a call are there, with nothing in them."""
    rows = spending(by=("model", "month"), zone=zone, scope=SpendScope(from_=from_, to=until, kind="chat"))
    months: list[date] = []
    month = first
    while len(months) < 24 and month < until.date():
        months.append(month)
        month = (month.replace(day=28) + timedelta(days=4)).replace(day=1)
    by_model: dict[str, dict[date, SpendSum]] = {}
    for row in rows:
        model, at = row.groups
        if isinstance(model, str) and model and isinstance(at, date):
            by_model.setdefault(model, {})[at] = row
    found = [
        Growing(model=model, months=[_month(sums.get(month, SpendSum())) for month in months])
        for model, sums in by_model.items()
    ]
    return sorted(found, key=lambda one: -sum((m.cost for m in one.months), Decimal(0)))


def _month(row: SpendSum) -> Month:
    return Month(
        requests=row.requests,
        # What is paid by the hour has no cost of its own; what was billed for it stands for it.
        cost=row.cost if row.uncosted < row.entries else row.price,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
    )


def rivals(*, zone: str, from_: datetime, to: datetime) -> list[Rival]:
    """Every server that is paid by the hour against every deployment that is paid by the token."""
    rows = spending(by=("deployment", "kind"), zone=zone, scope=SpendScope(from_=from_, to=to))
    hours: dict[UUID, SpendSum] = {}
    calls: dict[UUID, SpendSum] = {}
    for row in rows:
        deployment, kind = row.groups
        if isinstance(deployment, UUID):
            into = hours if kind == PROVISIONED else calls
            into[deployment] = into.get(deployment, SpendSum()) + row
    managed = {
        one: found.cost * 1_000_000 / tokens
        for one, found in calls.items()
        if one not in hours and found.cost > 0 and (tokens := found.input_tokens + found.output_tokens)
    }
    chat = Deployment.objects.filter(id__in=managed, purpose=Deployment.Purpose.CHAT)
    prices = {one: (managed[one], not calls[one].uncosted) for one in chat.values_list("id", flat=True)}
    return [
        rival
        for own, booked in sorted(hours.items(), key=lambda item: -item[1].cost)
        for rival in _against(own, booked, calls.get(own, SpendSum()), prices, zone, to)
    ]


def _against(
    own: UUID,
    booked: SpendSum,
    asked: SpendSum,
    managed: dict[UUID, tuple[Decimal, bool]],
    zone: str,
    to: datetime,
) -> list[Rival]:
    row = Deployment.objects.filter(id=own).first()
    knee = Decimal(str(row.knee_tokens_per_s)) if row is not None and row.knee_tokens_per_s else None
    able = knee or _busiest(own, zone, to)
    tokens = asked.input_tokens + asked.output_tokens
    per_hour = booked.cost / booked.entries
    found = []
    for other, (per_million, whole) in sorted(managed.items(), key=lambda item: item[1]):
        needed, part = break_even(hourly=per_hour, per_million=per_million, tokens_per_s=able)
        found.append(
            Rival(
                deployment_id=own,
                per_hour=per_hour,
                tokens_per_s=able,
                measured=knee is not None,
                used=Decimal(tokens) / (able * 3600 * booked.entries) if able else None,
                own_per_million=booked.cost * 1_000_000 / tokens if tokens else None,
                managed_id=other,
                managed_per_million=per_million,
                managed_whole=whole,
                break_even_tokens=needed,
                break_even=part,
            )
        )
    return found


def _busiest(deployment_id: UUID, zone: str, to: datetime) -> Decimal | None:
    scope = SpendScope(from_=to - timedelta(days=BUSY_DAYS), to=to, deployment_id=deployment_id)
    rows = spending(by=("hour",), zone=zone, scope=scope)
    most = max((row.input_tokens + row.output_tokens for row in rows), default=0)
    return Decimal(most) / 3600 if most else None


def smaller(*, from_: datetime) -> list[Smaller]:
    """For each chat deployment that was called: the dearest of those that are cheaper for what fits there."""
    rows = Deployment.objects.filter(
        purpose=Deployment.Purpose.CHAT, enabled=True, backend__enabled=True, is_demonstration=False
    )
    rooms = {row.id: row for row in rows}
    found: dict[UUID, Smaller] = {}
    for fit in fits(from_, [Room(row.id, row.context_window, row.max_output_tokens) for row in rows]):
        if not fit.fitting or fit.price <= 0:
            continue
        mean = (fit.input_tokens // fit.fitting, fit.output_tokens // fit.fitting)
        each = call_price(
            rooms[fit.into].price_key,
            team_id=None,
            input_tokens=max(1, mean[0]),
            output_tokens=max(1, mean[1]),
        )
        if each is None or (instead := each * fit.fitting) >= fit.price:
            continue
        known = found.get(fit.of)
        if known is None or instead * known.fitting > known.instead * fit.fitting:
            found[fit.of] = Smaller(
                deployment_id=fit.of,
                cheaper_id=fit.into,
                calls=fit.calls,
                fitting=fit.fitting,
                price=fit.price,
                instead=instead,
            )
    return sorted(found.values(), key=lambda one: one.instead - one.price)

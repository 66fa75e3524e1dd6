"""Writes beside the prices themselves: a team's mark-up, exchange rates, what a server costs by the hour, and ends."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from app.billing.checks import check_currency
from app.billing.errors import PriceConflict
from app.billing.models import ExchangeRate, PriceVersion, TeamRate
from app.billing.prices import price_set
from app.billing.turns import turn_take
from app.billing.types import HOUR, PROVISIONED, Price, Rate, Side
from app.billing.types.words import is_exact
from app.common.errors import InvalidInput


def team_rate_set(
    *,
    team_id: UUID,
    factor: Decimal,
    approved_by: str,
    price_key: str = "",
    source: str = "staff",
    effective_from: datetime | None = None,
) -> TeamRate:
    """Multiply the general prices for one team, from now (or later) on; `price_key` empty: all of them.

    A team's own fixed price goes before it. Errors: InvalidInput, PriceConflict (a past instant, a later rate).
    """
    if not is_exact(factor) or not 0 <= factor < 100 or factor != round(Decimal(factor), 6):
        raise InvalidInput("A factor is a number from 0 to below 100 with at most 6 decimals; 1.2 adds 20 %.")
    same = TeamRate.objects.filter(team_id=team_id, price_key=price_key)
    with transaction.atomic():
        start = _begin(f"rate:{team_id}:{price_key}", same, effective_from)
        return TeamRate.objects.create(
            team_id=team_id,
            price_key=price_key,
            factor=factor,
            effective_from=start,
            source=source,
            approved_by=approved_by,
        )


def team_rate_end(*, team_id: UUID, price_key: str = "", at: datetime | None = None) -> None:
    """The general prices count again from now (or later) on. Errors: PriceConflict when there is nothing to end."""
    same = TeamRate.objects.filter(team_id=team_id, price_key=price_key)
    _end(f"rate:{team_id}:{price_key}", same, at)


def price_end(
    *,
    price_key: str,
    side: Side = "price",
    team_id: UUID | None = None,
    mode: str = "standard",
    at: datetime | None = None,
) -> None:
    """End a price without another: from then on the general one counts, or none is known. Errors: PriceConflict."""
    same = PriceVersion.objects.filter(price_key=price_key, side=side, team_id=team_id, mode=mode)
    _end(f"price:{price_key}", same, at)


def exchange_rate_set(
    *,
    currency: str,
    rate: Decimal,
    entered_by: str,
    source: str = "",
    effective_from: datetime | None = None,
) -> ExchangeRate:
    """Say what one unit of `currency` is worth in the installation's, from now (or later) until the next rate.

    Errors: InvalidInput, PriceConflict (a past instant: entries keep the rate they were made with).
    """
    check_currency(currency)
    if currency == settings.CURRENCY:
        raise InvalidInput(f"{currency} is the installation's own currency and needs no rate.")
    if not is_exact(rate) or not 0 < rate < 10**9 or rate != round(Decimal(rate), 9):
        raise InvalidInput("An exchange rate is a number above 0 with at most 9 decimals.")
    with transaction.atomic():
        present = turn_take(f"exchange:{currency}")
        start = effective_from or present
        if start < present:
            raise PriceConflict(
                "A rate can only be set from now on: entries keep the rate they were made with."
            )
        if ExchangeRate.objects.filter(
            currency=currency, to_currency=settings.CURRENCY, effective_from=start
        ).exists():
            raise PriceConflict("There is a rate from that very instant already; rates are never changed.")
        return ExchangeRate.objects.create(
            currency=currency,
            to_currency=settings.CURRENCY,
            rate=rate,
            effective_from=start,
            source=source,
            entered_by=entered_by,
        )


def provisioned_set(
    *,
    deployment_id: UUID,
    per_hour: Decimal,
    approved_by: str,
    currency: str | None = None,
    source: str = "staff",
) -> Price:
    """Say what a deployment costs by the hour, used or not, from the next full hour on. Booked without a person.

    Its calls are no cost of their own from then on. Errors: InvalidInput (an amount or currency that cannot be, no
    exchange rate), PriceConflict (changed within this hour already).
    """
    currency = currency or settings.CURRENCY
    check_currency(currency)
    if (
        currency != settings.CURRENCY
        and not ExchangeRate.objects.filter(currency=currency, to_currency=settings.CURRENCY).exists()
    ):
        raise InvalidInput(
            f"There is no exchange rate from {currency} to {settings.CURRENCY}, so its hours could not be booked. "
            "Enter one first."
        )
    try:
        rate = Rate(component=HOUR, price=per_hour, per_units=1)
    except ValueError as exc:
        raise InvalidInput(str(exc)) from exc
    return price_set(
        price_key=f"{PROVISIONED}{deployment_id}",
        side="cost",
        rates=[rate],
        approved_by=approved_by,
        currency=currency,
        source=source,
        effective_from=_next_hour(),
    )


def provisioned_end(*, deployment_id: UUID) -> None:
    """The deployment costs nothing by the hour from the next full hour on. Errors: PriceConflict."""
    price_end(price_key=f"{PROVISIONED}{deployment_id}", side="cost", at=_next_hour())


def _next_hour() -> datetime:
    """Hours are booked whole, so each has one rate."""
    with transaction.atomic():
        present = turn_take("hour").astimezone(UTC)
    return present.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _begin(name: str, same: "QuerySet[Any]", wanted: datetime | None) -> datetime:
    """Close what is in force at the instant a new row begins, and return it. Errors: PriceConflict."""
    present = turn_take(name)
    start = wanted or present
    if start < present:
        raise PriceConflict("A rate can only be set from now on: calls already made keep the one they had.")
    if same.filter(effective_from__gte=start).exists():
        raise PriceConflict("A later rate exists already; it has to take effect first.")
    same.filter(effective_to__isnull=True).update(effective_to=start)
    return start


def _end(name: str, same: "QuerySet[Any]", wanted: datetime | None) -> None:
    with transaction.atomic():
        present = turn_take(name)
        at = wanted or present
        if at < present or not same.filter(effective_to__isnull=True, effective_from__lt=at).update(
            effective_to=at
        ):
            raise PriceConflict("There is nothing in force that could end then.")

"""Writing prices. A version is never changed; a new one closes the one in force."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from app.audit.services import Verb, audit
from app.billing import pricing
from app.billing.checks import check_rates, check_terms
from app.billing.errors import PriceConflict
from app.billing.models import PriceComponent, PriceVersion
from app.billing.selectors import price_of
from app.billing.turns import turn_take
from app.billing.types import Price, Rate, Side, TierMode


def price_set(  # noqa: PLR0913 - one keyword for each column
    *,
    price_key: str,
    rates: Sequence[Rate],
    approved_by: str,
    source: str = "staff",
    side: Side = "price",
    team_id: UUID | None = None,
    mode: str = "standard",
    effective_from: datetime | None = None,
    currency: str | None = None,
    tier_mode: TierMode = "whole_request",
) -> Price:
    """Set a price from now (or later) on; the version in force is closed at that instant.

    Cache and reasoning rates that are left out are written out as the same as input and output. `currency` is the
    installation's unless it is a cost; one in another currency counts once there is an exchange rate.
    Errors: InvalidInput (no rate, one twice, one without a base…), PriceConflict (a past instant, a later version).
    """
    currency = currency or settings.CURRENCY
    check_rates(rates)
    check_terms(price_key, side, currency, team_id, rates)
    written = pricing.complete(rates)
    same: dict[str, Any] = {"price_key": price_key, "side": side, "team_id": team_id, "mode": mode}
    with transaction.atomic():
        version = PriceVersion.objects.create(
            **same,
            currency=currency,
            effective_from=_close_before(same, effective_from),
            tier_mode=tier_mode,
            dearest=[tier.as_json() for tier in pricing.dearest(written, tier_mode)],
            source=source,
            approved_by=approved_by,
        )
        PriceComponent.objects.bulk_create(components_of(version, written))
        audit(
            Verb.PRICE_APPROVED,
            team_id=team_id,
            object_kind=side,
            object_id=price_key,
            after=", ".join(f"{rate.component} {rate.price.normalize():f}" for rate in rates),
        )
    return price_of(version, written)


def _close_before(same: dict[str, Any], wanted: datetime | None) -> datetime:
    """End the version in force where the next begins, and say when. Errors: PriceConflict."""
    present = turn_take(f"price:{same['price_key']}")
    start = wanted or present
    versions = PriceVersion.objects.filter(**same)
    if start < present:
        raise PriceConflict(
            "A price can only be set from now on: calls already made keep the price they had."
        )
    if versions.filter(effective_from__gte=start).exists():
        raise PriceConflict("A later version of this price exists already; it has to take effect first.")
    versions.filter(effective_to__isnull=True).update(effective_to=start)
    return start


def components_of(version: PriceVersion, rates: Sequence[Rate]) -> list[PriceComponent]:
    """The rows of a version, not yet written."""
    return [
        PriceComponent(
            version=version,
            component=rate.component,
            min_prompt_tokens=rate.min_prompt_tokens,
            per_units=rate.per_units,
            price=rate.price,
        )
        for rate in rates
    ]

"""From a list of prices to versions: what would change, and writing it. Whoever imports a list approves it.

A price that a person set stays theirs. The cost side keeps the list's currency; user prices are converted at the
exchange rate in force, times a mark-up, and rounded half-even to nine decimals.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Literal
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from app.billing.errors import PriceConflict
from app.billing.models import ExchangeRate, PriceComponent, PriceVersion
from app.billing.prices import components_of
from app.billing.pricing import dearest, marked
from app.billing.seed import Seed, SeedModel
from app.billing.turns import turn_take
from app.billing.types import Rate, Side
from app.catalog.models import Deployment
from app.common.clock import now

Change = Literal["new", "changed", "same", "gone", "kept"]
Place = tuple[str, Side, str]
"""(price key, side, mode)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPrice:
    """One version that stands, that the list has, or both."""

    price_key: str
    side: Side
    mode: str
    change: Change
    currency: str
    listed: tuple[Rate, ...] = ()
    standing: tuple[Rate, ...] = ()
    version_id: UUID | None = None
    """Of the version that stands."""
    why: str = ""
    """Of `kept`: why the list does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an import would do."""

    source: str
    rows: tuple[PlannedPrice, ...]
    unrated: bool
    """User prices were left out, because no exchange rate is in force."""

    def of(self, *changes: Change) -> list[PlannedPrice]:
        return [row for row in self.rows if row.change in changes]


def import_plan(
    seed: Seed,
    *,
    sides: Sequence[Side] = ("cost", "price"),
    patterns: Sequence[str] = (),
    markup: Decimal = Decimal(1),
    at: datetime | None = None,
) -> Plan:
    """Compare a list with what stands. `patterns` (`gpt-4o*`, `openai/*`) choose models; none: all. Reads only."""
    factor = exchange_factor(seed.currency)
    unrated = factor is None and "price" in sides
    chosen = dict(_chosen(seed, patterns))
    listed: dict[Place, tuple[tuple[Rate, ...], str]] = {}
    for key, model in chosen.items():
        for mode, rates in model.modes.items():
            if "cost" in sides:
                listed[key, "cost", mode] = (rates, seed.currency)
            if "price" in sides and factor is not None:
                listed[key, "price", mode] = (marked(rates, factor * markup), settings.CURRENCY)
    standing = _standing(sides)
    own = _own_keys(seed)
    rows = [
        _row(place, rates, currency, standing.get(place), own, seed.source, at or now())
        for place, (rates, currency) in listed.items()
    ]
    rows += _gone(standing, listed, seed, patterns)
    return Plan(source=seed.source, rows=tuple(rows), unrated=unrated)


def import_write(plan: Plan, *, approved_by: str, effective_from: datetime | None = None) -> int:
    """Write what is new or changed, all or nothing, from now (or later) on. Returns how many versions.

    Errors: PriceConflict when a price was set since the plan was made, or for a past instant.
    """
    rows = plan.of("new", "changed")
    with transaction.atomic():
        present = turn_take("price import")
        start = effective_from or present
        if start < present:
            raise PriceConflict(
                "Prices can only be imported from now on: calls already made keep what they had."
            )
        with connection.cursor() as cursor:
            # Calls go on reading prices; whoever sets one waits.
            cursor.execute("LOCK TABLE billing_priceversion IN SHARE ROW EXCLUSIVE MODE")
        _unchanged_since(rows, start)
        replaced = [row.version_id for row in rows if row.version_id]
        PriceVersion.objects.filter(pk__in=replaced).update(effective_to=start)
        _versions_create(rows, start, plan.source, approved_by)
    return len(rows)


def _unchanged_since(rows: Sequence[PlannedPrice], start: datetime) -> None:
    """Errors: PriceConflict when one of these places was given a price that the plan does not know."""
    known = {row.version_id for row in rows if row.version_id}
    newer = PriceVersion.objects.filter(price_key__in=[row.price_key for row in rows], team_id=None)
    newer = newer.filter(Q(effective_from__gte=start) | Q(effective_to=None)).exclude(pk__in=known)
    places = {(row.price_key, row.side, row.mode) for row in rows}
    if late := [v.price_key for v in newer if (v.price_key, v.side, v.mode) in places]:
        raise PriceConflict(f"{late[0]} was given another price meanwhile; look at the differences again.")


def _versions_create(rows: Sequence[PlannedPrice], start: datetime, source: str, approved_by: str) -> None:
    versions = [
        PriceVersion(
            price_key=row.price_key,
            side=row.side,
            mode=row.mode,
            currency=row.currency,
            effective_from=start,
            dearest=[tier.as_json() for tier in dearest(row.listed)],
            source=source,
            approved_by=approved_by,
        )
        for row in rows
    ]
    PriceVersion.objects.bulk_create(versions)
    components = [
        component
        for version, row in zip(versions, rows, strict=True)
        for component in components_of(version, row.listed)
    ]
    PriceComponent.objects.bulk_create(components, batch_size=2000)


def exchange_factor(currency: str) -> Decimal | None:
    """What one unit of `currency` is worth now in the installation's; None: no rate is in force."""
    if currency == settings.CURRENCY:
        return Decimal(1)
    rates = ExchangeRate.objects.filter(
        currency=currency, to_currency=settings.CURRENCY, effective_from__lte=now()
    )
    return rates.order_by("-effective_from").values_list("rate", flat=True).first()


def _chosen(seed: Seed, patterns: Sequence[str]) -> Iterator[tuple[str, SeedModel]]:
    """(price key, model): what the deployments here serve, by their servers' addresses, then all others by name.

    Names that several providers have are the first one's, later ones of the list give way.
    """
    taken: dict[str, SeedModel] = {}
    for row in Deployment.objects.select_related("backend").order_by("-priority", "id"):
        provider = seed.provider_at(row.backend.base_url)
        model = provider.model_of(row.upstream_model) if provider else None
        if model is not None:
            taken.setdefault(row.price_key, model)
    for model in seed.models():
        taken.setdefault(f"{model.kind}/{model.id}"[:200], model)
    for key, model in taken.items():
        names = (key, model.id, f"{model.provider}/{model.id}")
        if not patterns or any(fnmatchcase(name.lower(), p.lower()) for name in names for p in patterns):
            yield key, model


def _own_keys(seed: Seed) -> set[str]:
    """Price keys that only servers outside the list sell under: nobody else's price fits them."""
    listed: set[str] = set()
    own: set[str] = set()
    for row in Deployment.objects.select_related("backend"):
        (listed if seed.provider_at(row.backend.base_url) else own).add(row.price_key)
    return own - listed


def _standing(sides: Sequence[Side]) -> Mapping[Place, PriceVersion]:
    """The newest version of each general price, in force or to come."""
    rows = PriceVersion.objects.filter(team_id=None, side__in=sides, effective_to=None)
    return {(v.price_key, _side(v), v.mode): v for v in rows.prefetch_related("components")}


def _side(version: PriceVersion) -> Side:
    return "cost" if version.side == "cost" else "price"


def _row(  # noqa: PLR0913, PLR0917 - what is compared, and with what
    place: Place,
    rates: tuple[Rate, ...],
    currency: str,
    version: PriceVersion | None,
    own: set[str],
    source: str,
    at: datetime,
) -> PlannedPrice:
    key, side, mode = place
    row = PlannedPrice(
        price_key=key,
        side=side,
        mode=mode,
        change="new",
        currency=currency,
        listed=rates,
        standing=_rates(version),
        version_id=version.pk if version else None,
    )
    if key in own:
        return replace(row, change="kept", why="a server of your own sells under this key")
    if version is None:
        return row
    if version.currency == currency and set(row.standing) == set(rates):
        return replace(row, change="same")
    if _list_of(version.source) != _list_of(source):
        return replace(row, change="kept", why=f"it was set by {version.source}")
    if version.effective_from >= at:
        return replace(row, change="kept", why="a later price is set already")
    return replace(row, change="changed")


def _rates(version: PriceVersion | None) -> tuple[Rate, ...]:
    return tuple(
        Rate(
            component=c.component,
            price=c.price,
            per_units=c.per_units,
            min_prompt_tokens=c.min_prompt_tokens,
        )
        for c in (version.components.all() if version else ())
    )


def _list_of(source: str) -> str:
    """A list's name without its version."""
    return source.partition(" ")[0]


def _gone(
    standing: Mapping[Place, PriceVersion],
    listed: Mapping[Place, object],
    seed: Seed,
    patterns: Sequence[str],
) -> list[PlannedPrice]:
    """What an earlier list had and this one has not. Its price stays until somebody ends it: it may still be served."""
    name = _list_of(seed.source)
    sides = {side for _, side, _ in listed}
    return [
        PlannedPrice(
            price_key=key,
            side=side,
            mode=mode,
            change="gone",
            currency=version.currency,
            standing=_rates(version),
        )
        for (key, side, mode), version in sorted(standing.items())
        if _list_of(version.source) == name
        and (key, side, mode) not in listed
        and side in sides
        and (not patterns or any(fnmatchcase(key.lower(), p.lower()) for p in patterns))
    ]

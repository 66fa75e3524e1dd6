"""What the servers page shows: each server as it stands, and the deployments of each model beside one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings

from app.billing.spending import spending
from app.billing.types.spending import SpendScope
from app.catalog.models import Backend, Deployment
from app.catalog.selectors import Target, targets
from app.catalog.telemetry import Load, loads_latest
from app.chat import speed
from app.chat.speed import Pace, Span
from app.common.clock import now
from app.dashboard.filters import day_start
from app.gate.health import health_of
from app.gate.limiter import outstanding

FRESH = timedelta(minutes=2)
"""A server that told nothing for longer may be away."""
MEASURED = timedelta(days=7)
"""What times and prices are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One deployment."""

    id: UUID
    name: str
    upstream: str
    purpose: str
    server: str
    enabled: bool
    running: int
    """Calls of this web process that run there or wait for it."""
    slots: int
    clearance: str
    pace: Pace | None
    per_million: Decimal | None
    """What its users paid per million tokens, input and output together; None: nothing was booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One server."""

    row: Backend
    tone: str
    """good, warn, bad, or empty where nothing is known."""
    words: str
    load: Load | None
    models: Sequence[Model]

    def figure(self, name: str) -> float | None:
        """One of its own figures; None where it does not tell, or has not for a while."""
        return self.load.figures.get(name) if self.load and self.load.taken_at > now() - FRESH else None

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Its load in words: requests and shares."""
        named = (("running", "running"), ("waiting", "waiting"))
        shares = (("KV cache", "kv_cache_share"), ("GPU", "gpu_share"))
        found = [(words, f"{value:.0f}") for words, name in named if (value := self.figure(name)) is not None]
        found += [
            (words, f"{value:.0%}") for words, name in shares if (value := self.figure(name)) is not None
        ]
        if (way := self.figure("round_trip_s")) is not None:
            found.append(("there and back", f"{way * 1e3:.0f} ms"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One public model with all that serve it."""

    name: str
    models: Sequence[Model]
    peak: int
    """The most turns at once in the time measured."""

    @property
    def slots(self) -> int:
        """What all together take at once."""
        return sum(model.slots for model in self.models if model.enabled)

    @property
    def without(self) -> list[tuple[str, int]]:
        """What is left when one server is away."""
        on = [model for model in self.models if model.enabled]
        return [(m.server, self.slots - sum(x.slots for x in on if x.server == m.server)) for m in on]


def standings() -> list[Standing]:
    """Every server, those in use first."""
    loads = loads_latest()
    known = _targets()
    models = _models()
    rows = Backend.objects.order_by("-enabled", "name")
    return [
        _standing(row, loads.get(row.id), known, [m for m in models if m.server == row.name]) for row in rows
    ]


def offers(found: Sequence[Standing]) -> list[Offer]:
    """The chat models by public name."""
    peaks = speed.peaks(_measured())
    names: dict[str, list[Model]] = {}
    for model in (model for standing in found for model in standing.models):
        if model.purpose == Deployment.Purpose.CHAT and model.enabled:
            names.setdefault(model.name, []).append(model)
    return [
        Offer(name=name, models=models, peak=peaks.get(name, 0)) for name, models in sorted(names.items())
    ]


def target_of(deployment_id: UUID) -> Target | None:
    """The deployment as a call needs it; None when it is off."""
    return _targets().get(deployment_id)


def _targets() -> dict[UUID, Target]:
    return {
        target.deployment_id: target for purpose in Deployment.Purpose for target in targets(purpose.value)
    }


def _measured() -> Span:
    moment = now()
    return Span(since=moment - MEASURED, until=moment)


def _models() -> list[Model]:
    _, parts = speed.paces(_measured())
    paces = {part.deployment_id: part for part in parts}
    prices = _prices()
    rows = Deployment.objects.select_related("backend").order_by("-enabled", "-priority", "public_name")
    return [
        Model(
            id=row.id,
            name=row.public_name,
            upstream=row.upstream_model,
            purpose=row.purpose,
            server=row.backend.name,
            enabled=row.enabled and row.backend.enabled,
            running=outstanding(row.id),
            slots=row.slots,
            clearance=row.clearance,
            pace=paces.get(row.id),
            per_million=prices.get(row.id),
        )
        for row in rows
    ]


def _prices() -> dict[UUID, Decimal]:
    zone = settings.INSTALLATION_ZONE
    # From a midnight on, so that days are read which the roll-ups have added up.
    today = now().astimezone(ZoneInfo(zone)).date()
    scope = SpendScope(from_=day_start(today - MEASURED, zone), to=day_start(today + timedelta(days=1), zone))
    rows = spending(by=("deployment",), zone=zone, scope=scope)
    return {
        group: row.price * 1_000_000 / tokens
        for row in rows
        if isinstance(group := row.groups[0], UUID) and (tokens := row.input_tokens + row.output_tokens)
    }


def _standing(
    row: Backend, load: Load | None, known: Mapping[UUID, Target], models: Sequence[Model]
) -> Standing:
    tone, words = _state(row, load, [known[model.id] for model in models if model.id in known])
    return Standing(row=row, tone=tone, words=words, load=load, models=models)


def _state(row: Backend, load: Load | None, served: Sequence[Target]) -> tuple[str, str]:
    if not row.enabled:
        return "", "Switched off"
    healths = [health_of(target) for target in served]
    if any(health.state == "open" for health in healths):
        wait = max(health.wait_s for health in healths)
        return "bad", f"Failed several times and is left alone; the next try is in {wait:.0f} s"
    if load is not None and load.problem:
        return "warn", load.problem
    if load is not None and load.taken_at < now() - FRESH:
        return "warn", "Has told nothing of itself for some minutes; is beat running?"
    if load is not None:
        return "good", "Answers"
    return "", "Shows no figures of its own; its calls tell whether it answers"

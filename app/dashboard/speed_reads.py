"""What the speed page shows: how turns went, where their time was, and what is known of the cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from app.catalog.models import Deployment
from app.catalog.telemetry import load_means
from app.chat import speed
from app.chat.models import TurnTiming
from app.chat.speed import Lost, Pace, Span
from app.chat.stages import TO_FIRST_TOKEN
from app.chat.timings import waterfall
from app.common.queues import queues_served
from app.common.redis_door import Unavailable, sync_redis
from app.dashboard.diagnosis import FEW_TURNS, Evidence, Finding, Load, Queue, Spell, findings
from app.dashboard.layers import Stack, stack

SILENCE_S = 120.0
"""A deployment that was left alone for longer may have put its model away."""
RECENT = timedelta(minutes=15)
"""What "now" is when the page says why it is slow."""
_TOO_FEW = "Too few turns in the last 15 minutes, or in the day before, to compare them."
TIMES_BEFORE = 96
"""What it is compared with: a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceRow:
    """A deployment's line in the table."""

    name: str
    server: str
    pace: Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Everything the page needs."""

    whole: Pace
    rows: Sequence[PaceRow]
    sizes: Sequence[tuple[str, int, tuple[float, float, float]]]
    chart: Stack
    lost: Sequence[Lost]
    slow: Sequence[TurnTiming]
    findings: Sequence[Finding]
    silent: str
    """Why nothing can be said of causes; empty when something can, or nothing has grown."""


def speed_of(span: Span, *, step: timedelta) -> Speed:
    """Of the turns of the span; the causes are those of now."""
    whole, parts = speed.paces(span)
    servers = _servers()
    recent = Span(
        since=span.until - RECENT, until=span.until, model=span.model, deployment_id=span.deployment_id
    )
    seen = evidence(recent, recent.before(TIMES_BEFORE))
    few = min(seen.before.turns, seen.after.turns)
    return Speed(
        whole=whole,
        rows=[
            PaceRow(
                name=part.served_by, server=servers.get(part.deployment_id, "one that was deleted"), pace=part
            )
            for part in parts
        ],
        sizes=speed.first_tokens_by_size(span),
        chart=stack(speed.stage_series(span, step), since=span.since, until=span.until, step=step),
        lost=speed.models_lost(span),
        slow=speed.slowest(span),
        findings=findings(seen),
        silent="" if few >= FEW_TURNS else _TOO_FEW,
    )


def _servers() -> Mapping[UUID | None, str]:
    rows = Deployment.objects.values_list("id", "backend__name")
    return dict(rows)


def evidence(after: Span, before: Span, *, silence_s: float = SILENCE_S) -> Evidence:
    """Both spells with the load of the server that answered most turns of the later one, and the queues as of now."""
    _, parts = speed.paces(after)
    busiest = next((part.deployment_id for part in parts if part.deployment_id), None)
    backend = (
        Deployment.objects.filter(id=busiest).values_list("backend_id", flat=True).first()
        if busiest
        else None
    )
    spells = [_spell(span, backend) for span in (before, after)]
    usual = sum(spells[0].stages.get(name, 0.0) for name in TO_FIRST_TOKEN)
    return Evidence(
        before=spells[0],
        after=spells[1],
        silent_share=speed.excess_after_silence(after, usual_ms=usual, silence_s=silence_s),
        queues=queues(),
    )


def _spell(span: Span, backend_id: UUID | None) -> Spell:
    means = speed.means(span)
    told = load_means(backend_id, since=span.since, until=span.until) if backend_id else {}
    return Spell(
        turns=means.turns,
        stages=means.stages,
        input_tokens=means.input_tokens,
        output_tokens=means.output_tokens,
        itl_ms=means.itl_ms,
        load=Load(
            running=told.get("running"),
            waiting=told.get("waiting"),
            kv_cache_share=told.get("kv_cache_share"),
            preemptions=told.get("preemptions_total"),
            round_trip_s=told.get("round_trip_s"),
        ),
    )


def queues() -> list[Queue]:
    """How many tasks wait in each queue, and whether a worker takes from it; empty when the broker is away."""
    try:
        served = queues_served(settings.QUEUES)
        redis = sync_redis()
        return [
            Queue(name=name, waiting=int(redis.llen(name)), served=served[name]) for name in settings.QUEUES
        ]
    except Unavailable:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stage of one turn; thousandths of the whole for drawing."""

    name: str
    ms: float
    x: int
    width: int


def steps(row: TurnTiming) -> list[Step]:
    """The waterfall of a turn."""
    whole = max(row.total_ms, 0.001)
    return [
        Step(name=name, ms=length, x=round(at / whole * 1000), width=max(2, round(length / whole * 1000)))
        for name, at, length in waterfall(row.stages)
    ]


def server_of(deployment_id: UUID) -> str:
    """`model on server`, or that it is gone."""
    found = Deployment.objects.filter(id=deployment_id).select_related("backend").first()
    return str(found) if found else "a deployment that was deleted"


def names() -> list[str]:
    """Every public name that ever answered or can answer."""
    return list(
        Deployment.objects.filter(purpose=Deployment.Purpose.CHAT)
        .order_by("public_name")
        .values_list("public_name", flat=True)
        .distinct()
    )


def span_of(until: datetime, length: timedelta, model: str = "") -> Span:
    """The last `length` before `until`."""
    return Span(since=until - length, until=until, model=model)

"""Reads of how long turns took: percentiles, means by stage, the slowest, and how long a model was lost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from app.chat.models import TurnTiming

BUCKETS: tuple[tuple[str, int], ...] = (("<1k", 1_000), ("1–4k", 4_000), ("4–16k", 16_000), (">16k", 1 << 62))
"""Names and upper ends of input sizes, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Turns that ended in it, of one model or deployment where named."""

    since: datetime
    until: datetime
    model: str = ""
    deployment_id: UUID | None = None

    def values(self) -> dict[str, Any]:
        """What the statements below ask for."""
        return asdict(self)

    def before(self, times: int = 1) -> "Span":
        """What came just before it, `times` as long."""
        length = (self.until - self.since) * times
        return Span(
            since=self.since - length,
            until=self.since,
            model=self.model,
            deployment_id=self.deployment_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Some turns together; milliseconds. A figure is None where no turn had it."""

    turns: int
    failed: int
    retried: int
    fell_back: int
    ttft: tuple[float, float, float] | None
    """Median, 95th and 99th percentile."""
    itl: tuple[float, float] | None
    tokens_per_second: float | None
    """The median."""
    deployment_id: UUID | None = None
    served_by: str = ""


_TURN = """
WITH turn AS NOT MATERIALIZED (
  SELECT * FROM chat_turntiming WHERE ended_at >= %(since)s AND ended_at < %(until)s
    AND (%(model)s = '' OR served_by = %(model)s)
    AND (%(deployment_id)s::uuid IS NULL OR deployment_id = %(deployment_id)s)
)
"""
_PACE = """
SELECT count(*), count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE calls > 1),
  count(*) FILTER (WHERE served_by <> model),
  percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY ttft_ms),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY itl_ms),
  percentile_cont(0.5) WITHIN GROUP (ORDER BY tokens_per_second), deployment_id, served_by
FROM turn GROUP BY GROUPING SETS ((), (deployment_id, served_by)) ORDER BY grouping(deployment_id) DESC, 1 DESC
"""


def paces(span: Span) -> tuple[Pace, list[Pace]]:
    """All turns together, and by deployment with the name it served under, the busiest first."""
    with connection.cursor() as cursor:
        cursor.execute(_TURN + _PACE, span.values())
        whole, *parts = [
            Pace(
                turns=turns,
                failed=failed,
                retried=retried,
                fell_back=fell_back,
                ttft=(ttft[0], ttft[1], ttft[2]) if ttft else None,
                itl=(itl[0], itl[1]) if itl else None,
                tokens_per_second=speed,
                deployment_id=deployment_id,
                served_by=served_by or "",
            )
            for turns, failed, retried, fell_back, ttft, itl, speed, deployment_id, served_by in cursor
        ]
    return whole, parts


_BY_SIZE = """
SELECT width_bucket(input_tokens, %(ends)s::bigint[]), count(*),
  percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY ttft_ms)
FROM turn WHERE ttft_ms IS NOT NULL GROUP BY 1 ORDER BY 1
"""


def first_tokens_by_size(span: Span) -> list[tuple[str, int, tuple[float, float, float]]]:
    """By size of the input: its name, how many turns, and median, 95th, 99th percentile of the time to first token."""
    ends = [end for _, end in BUCKETS[:-1]]
    with connection.cursor() as cursor:
        cursor.execute(_TURN + _BY_SIZE, span.values() | {"ends": ends})
        return [(BUCKETS[bucket][0], turns, (low, high, top)) for bucket, turns, (low, high, top) in cursor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a turn of the span that did not fail took on average."""

    turns: int
    stages: Mapping[str, float]
    """Milliseconds by stage, of all turns; one that a turn did not have counts as 0."""
    input_tokens: float
    output_tokens: float
    itl_ms: float | None


_MEANS = """
SELECT count(*), coalesce(avg(input_tokens), 0)::float8, coalesce(avg(output_tokens), 0)::float8, avg(itl_ms)
FROM turn WHERE state <> 'failed'
"""
_STAGES = """
SELECT stage.key, sum(stage.value::float8) FROM turn, jsonb_each_text(stages) AS stage
WHERE state <> 'failed' GROUP BY 1
"""


def means(span: Span) -> Means:
    """Means over the span."""
    with connection.cursor() as cursor:
        cursor.execute(_TURN + _MEANS, span.values())
        turns, inputs, outputs, itl = cursor.fetchone()
        cursor.execute(_TURN + _STAGES, span.values())
        stages = {name: total / turns for name, total in cursor}
    return Means(turns=turns, stages=stages, input_tokens=inputs, output_tokens=outputs, itl_ms=itl)


_SERIES = """
, step AS (
  SELECT to_timestamp(floor(extract(epoch FROM ended_at) / %(width)s) * %(width)s) AS at, stages
  FROM turn WHERE state <> 'failed'
), counted AS (SELECT at, count(*) AS turns FROM step GROUP BY at)
SELECT at, counted.turns, stage.key, sum(stage.value::float8)
FROM step JOIN counted USING (at), jsonb_each_text(step.stages) AS stage GROUP BY 1, 2, 3 ORDER BY 1
"""


def stage_series(span: Span, step: timedelta) -> list[tuple[datetime, int, dict[str, float]]]:
    """For a chart: (beginning of the step, turns, mean milliseconds by stage), steps without turns left out."""
    found: dict[datetime, tuple[int, dict[str, float]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_TURN.rstrip() + _SERIES, span.values() | {"width": step.total_seconds()})
        for at, turns, stage, total in cursor:
            found.setdefault(at, (turns, {}))[1][stage] = total / turns
    return [(at, turns, stages) for at, (turns, stages) in found.items()]


def slowest(span: Span, limit: int = 20) -> list[TurnTiming]:
    """The turns that took longest."""
    rows = TurnTiming.objects.filter(ended_at__gte=span.since, ended_at__lt=span.until)
    if span.model:
        rows = rows.filter(served_by=span.model)
    if span.deployment_id:
        rows = rows.filter(deployment_id=span.deployment_id)
    return list(rows.order_by("-total_ms")[:limit])


def turn_found(wanted: str) -> TurnTiming | None:
    """The newest turn with this request id, or the turn with this id."""
    found = TurnTiming.objects.filter(request_id=wanted).order_by("-ended_at").first()
    if found is None:
        try:
            return TurnTiming.objects.filter(id=UUID(wanted)).first()
        except ValueError:
            return None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A model that stopped answering."""

    model: str
    at: datetime
    failed: int
    """Turns that failed meanwhile."""
    back_after_s: float | None
    """Until the first good answer under that name, by whichever deployment; None: not yet."""


_LOST = """
WITH runs AS (
  SELECT model, ended_at, state = 'failed' AS bad,
    count(*) FILTER (WHERE state <> 'failed') OVER (PARTITION BY model ORDER BY ended_at, id) AS good
  FROM chat_turntiming WHERE ended_at >= %s AND ended_at < %s AND state IN ('done', 'failed')
), outages AS (
  SELECT model, good, min(ended_at) AS at, count(*) AS failed FROM runs WHERE bad GROUP BY model, good
)
SELECT model, at, failed, (
  SELECT extract(epoch FROM min(ended_at) - at)::float8 FROM runs
  WHERE NOT bad AND runs.model = outages.model AND ended_at > at
) FROM outages ORDER BY at DESC LIMIT %s
"""


def models_lost(span: Span, limit: int = 10) -> list[Lost]:
    """Times in which every turn of a model failed, the newest first, and how soon it answered again."""
    with connection.cursor() as cursor:
        cursor.execute(_LOST, [span.since, span.until, limit])
        return [
            Lost(model=model, at=at, failed=failed, back_after_s=after) for model, at, failed, after in cursor
        ]


_AFTER_SILENCE = """
SELECT sum(excess) FILTER (WHERE silent) / nullif(sum(excess), 0) FROM (
  SELECT greatest(0, ttft_ms - %(usual_ms)s) AS excess, coalesce(
    extract(epoch FROM ended_at - lag(ended_at) OVER (PARTITION BY deployment_id ORDER BY ended_at))
      - total_ms / 1000 > %(silence_s)s, true) AS silent
  FROM turn WHERE ttft_ms IS NOT NULL
) AS late
"""


def excess_after_silence(span: Span, *, usual_ms: float, silence_s: float) -> float | None:
    """Of the time to first token beyond `usual_ms`, the share of turns whose deployment had been left alone before.

    None when nothing is beyond.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TURN + _AFTER_SILENCE, span.values() | {"usual_ms": usual_ms, "silence_s": silence_s})
        share = cursor.fetchone()[0]
    return None if share is None else float(share)


_PEAKS = """
SELECT served_by, max(open) FROM (
  SELECT served_by, sum(step) OVER (PARTITION BY served_by ORDER BY at, step) AS open FROM (
    SELECT served_by, ended_at AS at, -1 AS step FROM turn
    UNION ALL SELECT served_by, ended_at - total_ms * interval '1 ms', 1 FROM turn
  ) AS ends
) AS running GROUP BY served_by
"""


def peaks(span: Span) -> dict[str, int]:
    """By public name: the most turns that were under way at once."""
    with connection.cursor() as cursor:
        cursor.execute(_TURN + _PEAKS, span.values())
        return {name: int(most) for name, most in cursor}

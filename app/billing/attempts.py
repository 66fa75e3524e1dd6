"""Reads of upstream calls: what was counted before beside what the server said, and how long each took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Max

from app.billing.models import UsageAttempt

RECENT = 100
"""Calls that times are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCall:
    """One call with both counts of its input."""

    at: datetime
    turn_id: UUID | None
    reservation_id: UUID
    local: int
    """Ours, before it was sent."""
    told: int
    """The server's."""
    facts: tuple[int, ...] | None
    flags: tuple[str, ...]

    @property
    def off_pct(self) -> float:
        """How much more the server said than we did, in percent of ours."""
        return (self.told / max(1, self.local) - 1) * 100


def calls_counted(
    deployment_id: UUID, *, tokenizer: str | None = None, since: datetime | None = None, limit: int = 500
) -> list[CountedCall]:
    """The last chat calls of a deployment that a server's figure is known of, newest first."""
    rows = UsageAttempt.objects.filter(
        deployment_id=deployment_id, kind="chat", source="server_final", local_input_tokens__gt=0
    )
    if tokenizer is not None:
        rows = rows.filter(tokenizer=tokenizer)
    if since is not None:
        rows = rows.filter(created_at__gt=since)
    return [
        CountedCall(
            at=row.created_at,
            turn_id=row.turn_id,
            reservation_id=row.reservation_id,
            local=row.local_input_tokens or 0,
            told=row.input_tokens,
            facts=tuple(row.prompt_facts) if row.prompt_facts else None,
            flags=tuple(row.flags),
        )
        for row in rows.order_by("-created_at")[:limit]
    ]


def deployments_called(since: datetime) -> Mapping[UUID, datetime]:
    """Deployments with chat calls since then, each with its newest."""
    rows = UsageAttempt.objects.filter(created_at__gt=since, kind="chat", deployment_id__isnull=False)
    return dict(rows.values_list("deployment_id").annotate(newest=Max("created_at")))


_DRIFT = """
SELECT date_trunc(%s, created_at AT TIME ZONE %s) AS at, count(*) AS calls,
  percentile_cont(ARRAY[0.05, 0.5, 0.95]) WITHIN GROUP (
    ORDER BY (input_tokens::float8 / local_input_tokens - 1) * 100) AS off,
  count(*) FILTER (WHERE flags ? 'input_short') AS short
FROM billing_usageattempt
WHERE deployment_id = %s AND created_at >= %s AND kind = 'chat' AND source = 'server_final' AND local_input_tokens > 0
GROUP BY 1 ORDER BY 1
"""


def drift(
    deployment_id: UUID, *, since: datetime, step: str = "day", tz: str = "UTC"
) -> list[dict[str, Any]]:
    """For a chart: by hour or day the calls and how far off our count was, in percent of it.

    Each row: at, calls, p5, p50, p95 (what the server said more, less where negative), short (prompts that were cut).
    """
    with connection.cursor() as cursor:
        cursor.execute(_DRIFT, [step, tz, deployment_id, since])
        return [
            {"at": at, "calls": calls, "p5": low, "p50": middle, "p95": high, "short": short}
            for at, calls, (low, middle, high), short in cursor.fetchall()
        ]


_TIMES = """
SELECT percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY ttft_ms) FROM (
  SELECT ttft_ms FROM billing_usageattempt
  WHERE deployment_id = %s AND kind = 'chat' AND ttft_ms IS NOT NULL ORDER BY created_at DESC LIMIT %s
) AS latest
"""


def first_token_times(deployment_id: UUID) -> tuple[int, int] | None:
    """(median, 95th percentile) of the last calls' milliseconds to the first token; None before the first call."""
    with connection.cursor() as cursor:
        cursor.execute(_TIMES, [deployment_id, RECENT])
        found: Sequence[float] | None = cursor.fetchone()[0]
    return None if found is None else (round(found[0]), round(found[1]))


_STEPS = """
SELECT date_trunc(%s, created_at AT TIME ZONE %s) AS at, count(*) AS calls,
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY ttft_ms),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY itl_ms),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY queue_ms),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY total_ms)
FROM billing_usageattempt WHERE deployment_id = %s AND created_at >= %s GROUP BY 1 ORDER BY 1
"""


def call_times(
    deployment_id: UUID, *, since: datetime, step: str = "hour", tz: str = "UTC"
) -> list[dict[str, Any]]:
    """For a chart: by minute, hour or day the calls and (median, 95th percentile) milliseconds as we measured them.

    Each row: at, calls, ttft_ms, itl_ms, queue_ms (in our own line), total_ms; a pair is None where nothing is known.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STEPS, [step, tz, deployment_id, since])
        names = ("ttft_ms", "itl_ms", "queue_ms", "total_ms")
        return [
            {"at": at, "calls": calls}
            | {name: tuple(pair) if pair else None for name, pair in zip(names, pairs, strict=True)}
            for at, calls, *pairs in cursor.fetchall()
        ]


def lengths_recent(deployment_id: UUID, limit: int) -> list[tuple[int, int]]:
    """(input, output) tokens of the last finished chat calls that the server counted, the newest first."""
    rows = UsageAttempt.objects.filter(
        deployment_id=deployment_id,
        kind="chat",
        outcome="completed",
        source="server_final",
        output_tokens__gt=0,
    )
    return list(rows.order_by("-created_at").values_list("input_tokens", "output_tokens")[:limit])

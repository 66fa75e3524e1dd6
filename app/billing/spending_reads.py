"""What stands beside the sums: budgets as they burn down, threads by price, drift of the pre-count by deployment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from app.billing.types.spending import SpendScope

# The smallest sums name every deployment there was, so that no call has to be looked at to find them.
_DEPLOYMENTS = """(
  SELECT DISTINCT deployment_id AS id FROM billing_rollup
  WHERE grain = 'housemonth' AND deployment_id IS NOT NULL)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burning:
    """One money budget in its present window."""

    name: str
    scope: str
    subject: str
    team_id: UUID | None
    account_id: UUID | None
    limit: Decimal
    spent: Decimal
    held: Decimal
    starts_at: datetime
    ends_at: datetime


def budgets_burning(*, team_ids: Sequence[UUID] | None, at: datetime, people: bool) -> list[Burning]:
    """Windows of money that run now and have an end, the most used first; those of `team_ids` alone where given.

    `people`: those of single people too.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT b.name, b.scope, w.subject, w.limit_snapshot, w.spent + coalesce(f.spent, 0),
              w.held - coalesce(f.amount, 0), w.starts_at, w.ends_at
            FROM billing_budgetwindow w JOIN billing_budget b ON b.id = w.budget_id
            LEFT JOIN LATERAL (
              SELECT sum(l.amount) AS amount, sum(l.spent) AS spent
              FROM billing_reservationline l WHERE l.window_id = w.id AND l.state = 1
            ) f ON true
            WHERE b.active AND w.unit = 'money' AND w.starts_at <= %(at)s AND w.ends_at > %(at)s
              AND b.period <> 'lifetime' AND w.limit_snapshot > 0
              AND b.scope = ANY (%(scopes)s)
              AND (%(teams)s::text[] IS NULL OR split_part(w.subject, ':', 2) = ANY (%(teams)s))
            ORDER BY (w.spent + coalesce(f.spent, 0)) / w.limit_snapshot DESC, w.id LIMIT 200
            """,
            {
                "at": at,
                "scopes": ["installation", "team", *(("allowance", "person") if people else ())],
                "teams": None if team_ids is None else [str(team) for team in team_ids],
            },
        )
        return [_burning(row) for row in cursor.fetchall()]


def _burning(row: Sequence[Any]) -> Burning:
    name, scope, subject, limit, spent, held, starts_at, ends_at = row
    kind, *ids = subject.split(":")
    return Burning(
        name=name,
        scope=scope,
        subject=subject,
        team_id=UUID(ids[0]) if kind in {"t", "a"} and ids[0] != "*" else None,
        account_id=UUID(ids[-1]) if kind in {"a", "p"} and ids[-1] != "*" else None,
        limit=limit,
        spent=spent,
        held=held,
        starts_at=starts_at,
        ends_at=ends_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far our own count was off, over one deployment's calls. In percent of ours; more is above 0."""

    deployment_id: UUID
    calls: int
    p5: float
    p50: float
    p95: float
    short: int
    """Prompts that the server cut."""


def drift_by_deployment(*, since: datetime, most: int = 2000) -> list[Drift]:
    """Of each deployment's last `most` chat calls since then, whose input the server has told."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT d.id, count(*), percentile_cont(ARRAY[0.05, 0.5, 0.95]) WITHIN GROUP (
                ORDER BY (a.input_tokens::float8 / a.local_input_tokens - 1) * 100),
              count(*) FILTER (WHERE a.flags ? 'input_short')
            FROM {_DEPLOYMENTS} d
            CROSS JOIN LATERAL (
              SELECT input_tokens, local_input_tokens, flags FROM billing_usageattempt
              WHERE deployment_id = d.id AND created_at >= %s AND kind = 'chat' AND source = 'server_final'
                AND local_input_tokens > 0
              ORDER BY created_at DESC LIMIT %s
            ) a
            GROUP BY d.id
            """,  # noqa: S608 - a constant
            [since, most],
        )
        return [
            Drift(deployment_id=one, calls=calls, p5=low, p50=middle, p95=high, short=short)
            for one, calls, (low, middle, high), short in cursor.fetchall()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """What belongs together, such as a conversation, over whole months."""

    thread_id: UUID
    team_id: UUID | None
    account_id: UUID | None
    turns: int
    price: Decimal
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int


_SUMMED = "requests, price, input_tokens, output_tokens, cached_tokens, reasoning_tokens"
_DEAREST = f"""
WITH life AS MATERIALIZED (
  SELECT thread_id, team_id, account_id, price FROM billing_rollup WHERE grain = 'threadlife' {{where}}
  ORDER BY price DESC LIMIT %(looked_at)s
), pending AS MATERIALIZED (
  SELECT thread_id, team_id, account_id, {_SUMMED}
  FROM billing_spendfact f JOIN billing_rolluppending p ON p.entry_id = f.id
  WHERE thread_id IS NOT NULL AND at >= %(from)s AND at < %(to)s {{where}}
)
SELECT c.thread_id, c.team_id, c.account_id, sum(requests), sum(x.price) AS price, sum(input_tokens),
  sum(output_tokens), sum(cached_tokens), sum(reasoning_tokens),
  (SELECT CASE WHEN count(*) = %(looked_at)s THEN min(price) END FROM life)
FROM (SELECT thread_id, team_id, account_id FROM life UNION SELECT thread_id, team_id, account_id FROM pending) c
CROSS JOIN LATERAL (
  SELECT {_SUMMED} FROM billing_rollup r WHERE grain = 'thread' AND r.thread_id = c.thread_id
    AND (r.team_id, r.account_id) IS NOT DISTINCT FROM (c.team_id, c.account_id) AND at >= %(from)s AND at < %(to)s
  UNION ALL
  SELECT {_SUMMED} FROM pending r WHERE r.thread_id = c.thread_id
    AND (r.team_id, r.account_id) IS NOT DISTINCT FROM (c.team_id, c.account_id)
) x
GROUP BY 1, 2, 3 ORDER BY price DESC, c.thread_id LIMIT %(limit)s
"""  # noqa: S608 - constants
_LOOKED_AT = (200, 2_000, 20_000, None)


def threads_dearest(scope: SpendScope, *, limit: int = 25) -> list[Thread]:
    """The dearest threads of the months that the span touches, which `scope` gives as whole months.

    No month of a thread is dearer than all of it, so the dearest of all time are looked at first, and no more once the
    next of those is cheaper than what was found.
    """
    where = {
        "team_ids": "AND team_id = ANY (%(team_ids)s)",
        "team_id": "AND team_id = %(team_id)s",
        "account_id": "AND account_id = %(account_id)s",
    }
    given = {name: getattr(scope, name) for name in where if getattr(scope, name) is not None}
    query = _DEAREST.format(where=" ".join(where[name] for name in given))
    given |= {"from": scope.from_, "to": scope.to, "limit": limit}
    if scope.team_ids is not None:
        given["team_ids"] = list(scope.team_ids)
    rows: list[Any] = []
    with connection.cursor() as cursor:
        for looked_at in _LOOKED_AT:
            cursor.execute(query, given | {"looked_at": looked_at})
            rows = cursor.fetchall()
            if looked_at is None or not rows:
                continue
            price, cheapest = rows[-1][4], rows[-1][-1]
            if cheapest is None or (len(rows) == limit and price > cheapest):
                break
    return [Thread(**_whole(dict(zip(_THREAD, row[:-1], strict=True)))) for row in rows]


_THREAD = (
    "thread_id",
    "team_id",
    "account_id",
    "turns",
    "price",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
)


def _whole(values: dict[str, Any]) -> dict[str, Any]:
    return {n: int(v) if n == "turns" or n.endswith("_tokens") else v for n, v in values.items()}

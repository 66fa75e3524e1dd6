"""How long each view of the loaded year takes, and how many rows it touches."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django.db import connection
from django.test import Client

from app.accounts.models import User
from app.billing.rollup_checks import ROLLUP_CHECKS
from app.billing.rollups import rollups_rebuild
from app.common.clock import now
from bench.dashboard.loading import loaded, year_load

_LEAVES = {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan"}


def measure(*, rows: int, runs: int) -> None:
    """Load, fold and check, unless that was done before, and time."""
    owners = loaded()
    if owners is None:
        with _said("load", rows=rows):
            owners = year_load(rows)
        with _said("fold"):
            rollups_rebuild()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
            with _said("roll-ups against the entries"):
                for name, query in ROLLUP_CHECKS.items():
                    cursor.execute(query)
                    assert cursor.fetchall() == [], name
    with connection.cursor() as cursor:
        cursor.execute("SELECT grain, count(*) FROM billing_rollup GROUP BY 1 ORDER BY 1")
        print(json.dumps({"rows_of": dict(cursor.fetchall())}), flush=True)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.filter(is_staff=True).earliest("id"))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| view | p50 ms | p95 ms | CPU ms | SQL ms | rows touched |\n|---|---|---|---|---|---|")
    for name, path in _views(*owners).items():
        _timed(client, name, path, runs)


def _timed(client: Client, name: str, path: str, runs: int) -> None:
    queries = _Queries()
    with connection.execute_wrapper(queries):
        answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    times, used = [], []
    for _ in range(runs):
        start, before = time.perf_counter(), time.process_time()
        client.get(path)
        times.append((time.perf_counter() - start) * 1e3)
        used.append((time.process_time() - before) * 1e3)
    times.sort()
    p95 = times[min(len(times) - 1, round(len(times) * 0.95))]
    sql, touched = queries.explained()
    print(
        f"| {name} | {median(times):.0f} | {p95:.0f} | {median(used):.0f} | {sql:.0f} | {touched:,} |",
        flush=True,
    )


class _Queries:
    """What a view asks of billing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if "billing_" in sql and sql.lstrip().startswith(("SELECT", "WITH")) and "billing_limits" not in sql:
            self.asked.append((sql, params))
        return execute(sql, params, many, context)

    def explained(self) -> tuple[float, int]:
        """Milliseconds in PostgreSQL by EXPLAIN (ANALYZE), and rows read in all."""
        took, touched = 0.0, 0
        with connection.cursor() as cursor:
            for sql, params in self.asked:
                cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", params)
                (plan,) = cursor.fetchone()[0]
                took += plan["Execution Time"] + plan["Planning Time"]
                touched += sum(_read(plan["Plan"]))
        return took, touched


def _read(node: dict[str, Any]) -> Iterator[int]:
    if node["Node Type"] in _LEAVES:
        yield round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    for child in node.get("Plans", ()):
        yield from _read(child)


@contextmanager
def _said(what: str, **facts: int) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(json.dumps({"step": what, "s": round(time.monotonic() - began, 1), **facts}), flush=True)


def _views(team: UUID, person: UUID, key: UUID, collection: UUID) -> dict[str, str]:
    today = now().date()
    year = f"from={today - timedelta(days=364)}"
    quarter = f"from={today - timedelta(days=91)}"
    groups = (
        "day",
        "week",
        "month",
        "year",
        "team",
        "person",
        "key",
        "model",
        "deployment",
        "collection",
        "kind",
    )
    views = {f"a year by {by}": f"/dashboard/?{year}&group_by={by}" for by in groups}
    views |= {f"30 days by {by}": f"/dashboard/?group_by={by}" for by in ("day", "person", "team")}
    entries = f"/dashboard/entries/?{year}"
    return views | {
        "92 days by person": f"/dashboard/?{quarter}&group_by=person",
        "a day by hour": f"/dashboard/?from={today}&group_by=hour",
        "two weeks by hour": f"/dashboard/?from={today - timedelta(days=13)}&group_by=hour",
        "a year of a team by day": f"/dashboard/?{year}&team={team}&group_by=day",
        "a year of a team by person": f"/dashboard/?{year}&team={team}&group_by=person",
        "a year of a person by model": f"/dashboard/?{year}&person={person}&group_by=model",
        "a year of a person by day": f"/dashboard/?{year}&person={person}&group_by=day",
        "a year of a key by day": f"/dashboard/?{year}&key={key}&group_by=day",
        "a year of a collection by day": f"/dashboard/?{year}&collection={collection}&group_by=day",
        "a year of a model by person": f"/dashboard/?{year}&model=model-1&group_by=person",
        "a year by person, CSV": f"/dashboard/?{year}&group_by=person&format=csv",
        "entries of a year": entries,
        "entries of a team": f"{entries}&team={team}",
        "entries of a key": f"{entries}&key={key}",
        "entries of a collection": f"{entries}&collection={collection}",
        "estimated entries of a year": f"{entries}&flag=estimated",
        "late entries of a year": f"{entries}&flag=late",
        "budgets": "/dashboard/budgets/",
        "dearest of a month": "/dashboard/dearest/",
        "dearest of a year": f"/dashboard/dearest/?{year}",
        "dearest of a team": f"/dashboard/dearest/?{year}&team={team}",
        "own servers": f"/dashboard/own-servers/?{year}",
        "how sure, a year": f"/dashboard/accuracy/?{year}",
        "limits": "/dashboard/limits/",
        "speed": "/dashboard/speed/",
        "servers": "/dashboard/servers/",
    }

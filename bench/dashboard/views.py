"""The loaded year, and how long each view of it takes."""

import json
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from uuid import UUID

from django.db import connection, transaction
from django.test import Client

from app.accounts.models import Team, User
from app.billing.rollup_checks import ROLLUP_CHECKS
from app.billing.rollups import rollups_rebuild
from app.catalog.models import Backend, Deployment
from app.common.clock import now

PART = 50_000
"""Turns loaded by one transaction; each is two entries."""
LOAD = (Path(__file__).parent / "load.sql").read_text()


def measure(*, rows: int, runs: int) -> None:
    """Load, fold, check, and time."""
    team, person = _owners()
    began = time.monotonic()
    for _ in range(max(1, rows // 2 // PART)):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LOAD, {"n": min(PART, rows // 2), "threads": rows // 8})
    _say("load", began, rows=rows)
    began = time.monotonic()
    _say("fold", began, entries=rollups_rebuild())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        began = time.monotonic()
        differences = 0
        for query in ROLLUP_CHECKS.values():
            cursor.execute(query)
            differences += len(cursor.fetchall())
        _say("roll-ups against the entries", began, differences=differences)
        cursor.execute("SELECT grain, count(*) FROM billing_rollup GROUP BY 1 ORDER BY 1")
        print(json.dumps({"rows_of": dict(cursor.fetchall())}), flush=True)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.filter(is_staff=True).earliest("id"))
    for name, path in _views(team, person).items():
        times = []
        for _ in range(runs + 1):
            start = time.perf_counter()
            answer = client.get(path)
            times.append((time.perf_counter() - start) * 1e3)
            assert answer.status_code == 200, (path, answer.status_code)
        line = {"view": name, "median_ms": round(median(times[1:])), "worst_ms": round(max(times[1:]))}
        print(json.dumps(line | {"first_ms": round(times[0])}), flush=True)


def _say(what: str, began: float, **facts: int) -> None:
    print(json.dumps({"step": what, "s": round(time.monotonic() - began, 1), **facts}), flush=True)


def _owners() -> tuple[UUID, UUID]:
    teams = Team.objects.bulk_create(Team(name=f"Team {n}", slug=f"bench-{n}") for n in range(1, 51))
    people = User.objects.bulk_create(
        User(email=f"bench{t}-{n}@example.org", name=f"Person {t} {n}")
        for t in range(1, 51)
        for n in range(20)
    )
    backend = Backend.objects.create(
        name="bench", kind="openai", base_url="http://127.0.0.1:9", enabled=False
    )
    models = Deployment.objects.bulk_create(
        Deployment(backend=backend, public_name=f"model-{n}", upstream_model=f"m{n}", price_key=f"bench/{n}")
        for n in range(1, 7)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_team (n int PRIMARY KEY, id uuid);"
            "CREATE TABLE bench_person (team int, n int, id uuid, PRIMARY KEY (team, n));"
            "CREATE TABLE bench_deployment (n int, id uuid, name text, price_key text, price numeric);"
        )
        cursor.executemany(
            "INSERT INTO bench_team VALUES (%s, %s)", [(n + 1, t.id) for n, t in enumerate(teams)]
        )
        cursor.executemany(
            "INSERT INTO bench_person VALUES (%s, %s, %s)",
            [(n // 20 + 1, n % 20, p.account_id) for n, p in enumerate(people)],
        )
        cursor.executemany(
            "INSERT INTO bench_deployment VALUES (%s, %s, %s, %s, %s)",
            [(n + 1, d.id, d.public_name, d.price_key, n + 1) for n, d in enumerate(models)],
        )
    return teams[0].id, people[0].account_id


def _views(team: UUID, person: UUID) -> dict[str, str]:
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
    views |= {
        "92 days by person": f"/dashboard/?{quarter}&group_by=person",
        "a day by hour": f"/dashboard/?from={today}&group_by=hour",
        "a year of a team by person": f"/dashboard/?{year}&team={team}&group_by=person",
        "a year of a person by model": f"/dashboard/?{year}&person={person}&group_by=model",
        "a year by person, CSV": f"/dashboard/?{year}&group_by=person&format=csv",
        "entries of a year": f"/dashboard/entries/?{year}",
        "entries of a team": f"/dashboard/entries/?{year}&team={team}",
        "estimated entries of a year": f"/dashboard/entries/?{year}&flag=estimated",
        "budgets": "/dashboard/budgets/",
        "dearest of a month": "/dashboard/dearest/",
        "dearest of a year": f"/dashboard/dearest/?{year}",
        "own servers": f"/dashboard/own-servers/?{year}",
        "how sure, a year": f"/dashboard/accuracy/?{year}",
    }
    return views

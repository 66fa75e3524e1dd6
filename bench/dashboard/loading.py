"""A year of 1,000 people in 50 teams, made inside PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

from django.db import connection, transaction

from app.accounts.models import Team, User
from app.catalog.models import Backend, Deployment
from app.common.clock import now

PART = 50_000
"""Turns loaded by one transaction; each is two entries."""
LOAD = (Path(__file__).parent / "load.sql").read_text()
_TABLES = ("billing_reservation", "billing_usageattempt", "billing_ledgerline", "billing_ledgerentry")


def loaded() -> tuple[UUID, UUID, UUID, UUID] | None:
    """A team of the year with a person, a key and a collection of its own; None: there is no year yet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('bench_team') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return None
        cursor.execute(
            "SELECT t.id, p.id, t.keys[1], t.shelf[1] FROM bench_team t JOIN bench_person p ON p.team = t.n "
            "WHERE (t.n, p.n) = (1, 0)"
        )
        team, person, key, collection = cursor.fetchone()
        return team, person, key, collection


def year_load(rows: int) -> tuple[UUID, UUID, UUID, UUID]:
    """Load so many entries, spread over the last year, oldest first. Gives what `loaded` does."""
    _owners()
    turns = rows // 2
    end = now()
    begin = end - timedelta(days=365)
    parts = max(1, turns // PART)
    step = (end - begin) / parts
    with _triggers_off():
        for number in range(parts):
            span = {"from": begin + number * step, "to": begin + (number + 1) * step}
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(LOAD, {"n": turns // parts, **span})
    owners = loaded()
    assert owners is not None
    return owners


@contextmanager
def _triggers_off() -> Iterator[None]:
    """Row by row they take most of the time; `load.sql` writes what they would, and the roll-ups are made anew."""
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        for table in _TABLES:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def _owners() -> None:
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
            "CREATE TABLE bench_team (n int PRIMARY KEY, id uuid, keys uuid[], shelf uuid[]);"
            "CREATE TABLE bench_person (team int, n int, id uuid, PRIMARY KEY (team, n));"
            "CREATE TABLE bench_deployment (n int, id uuid, name text, price_key text, price numeric);"
        )
        cursor.executemany(
            "INSERT INTO bench_team VALUES (%s, %s, %s, %s)",
            [
                (n, team.id, [uuid4() for _ in range(3)], sorted(uuid4() for _ in range(3)))
                for n, team in enumerate(teams, start=1)
            ],
        )
        cursor.executemany(
            "INSERT INTO bench_person VALUES (%s, %s, %s)",
            [(n // 20 + 1, n % 20, p.account_id) for n, p in enumerate(people)],
        )
        cursor.executemany(
            "INSERT INTO bench_deployment VALUES (%s, %s, %s, %s, %s)",
            [(n, d.id, d.public_name, d.price_key, n) for n, d in enumerate(models, start=1)],
        )

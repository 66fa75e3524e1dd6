"""Each check against real parts, well and unwell."""

import json
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from itertools import islice
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.selectors import Target
from app.catalog.services import backend_put, deployment_put
from app.common import redis_door
from app.embedded import checks, checks_models, checks_web
from app.embedded.checks import Check
from app.embedded.doctor import doctor
from tests.factories import CHAT_PRICE


def failure(check: Check) -> str:
    assert check.state == "failed", check
    return check.message


@pytest.fixture
def no_broker(settings: Settings) -> Iterator[None]:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    redis_door.sync_redis.cache_clear()
    yield
    redis_door.sync_redis.cache_clear()


@pytest.mark.django_db
def test_database_checks_pass_on_a_migrated_database() -> None:
    states = [checks.database().state, checks.extension().state, checks.migrations().state]
    assert states == ["ok", "ok", "ok"]


@pytest.mark.django_db
def test_a_missing_migration_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    assert "sessions.0001_initial first" in failure(checks.migrations())


@pytest.mark.django_db
def test_a_role_that_owns_the_tables_is_named() -> None:
    assert "tessera_owner owns the tables" in failure(checks.role())


@pytest.mark.django_db
def test_the_applications_own_role_passes() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT usesuper FROM pg_user WHERE usename = 'tessera_app'")
        assert cursor.fetchone() == (False,)
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tableowner = 'tessera_app'")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db
def test_originals_beside_an_empty_database_are_noticed(settings: Settings, tmp_path: Path) -> None:
    settings.ORIGINALS_DIR = tmp_path
    assert checks.documents().state == "ok"
    (tmp_path / "ab").write_text("a document")
    assert "another or an empty database" in failure(checks.documents())


@pytest.mark.django_db
def test_prices_in_another_currency_than_the_installations_are_noticed(settings: Settings) -> None:
    price_set(price_key="m", rates=[Rate(component="input", price=Decimal(1))], approved_by="tests")
    assert checks.currency().state == "ok"
    settings.CURRENCY = "USD"
    assert "prices in force are in EUR" in failure(checks.currency())
    price_set(
        price_key="m", rates=[Rate(component="input", price=Decimal(1))], approved_by="tests", currency="USD"
    )
    assert checks.currency().state == "ok"


def test_the_broker_answers() -> None:
    assert checks.broker().state == "ok"


def _celery(**settings: str) -> Celery:
    """One of the test's own; as the current one it would take every task of the process to its broker for good."""
    return Celery("tests", set_as_current=False, **settings)


@pytest.mark.usefixtures("no_broker")
def test_a_broker_that_is_away_is_named_once() -> None:
    assert "correct REDIS_URL" in failure(checks.broker())
    away = _celery(broker="redis://127.0.0.1:9/0")
    (only,) = checks.queues(away)
    assert "could not be asked" in failure(only)


def test_a_queue_without_a_worker_is_named() -> None:
    idle = _celery(broker=django_settings.REDIS_URL)
    found = {check.name: check for check in checks.queues(idle)}
    assert "celery -A app.celery worker -Q ingest" in failure(found["queue ingest"])
    assert set(found) == {"queue default", "queue ingest", "queue ingest.small"}


def test_an_evicting_broker_is_named() -> None:
    client = redis_door.sync_redis()
    before = client.config_get("maxmemory-policy")["maxmemory-policy"]
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert "set noeviction" in failure(checks.broker())
    finally:
        client.config_set("maxmemory-policy", before)
    assert before == "noeviction"


def test_tokenizer_files_and_disk() -> None:
    assert [check.state for check in checks.tokenizer_files()] == ["ok", "ok"]
    assert [check.name for check in checks.disk()] == ["disk data", "disk originals"]


def test_a_nearly_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LOW_DISK", 10**18)
    assert all("free some space" in failure(check) for check in checks.disk())


@pytest.mark.parametrize(
    ("url", "words"),
    [("http://127.0.0.1:9", "does not answer"), ("https://127.0.0.1:9", "does not answer")],
)
def test_a_public_address_that_is_dead_is_named(settings: Settings, url: str, words: str) -> None:
    settings.PUBLIC_URL = url
    assert words in failure(checks_web.public_url())


def test_a_public_address_of_something_else_is_named(settings: Settings) -> None:
    settings.PUBLIC_URL = django_settings.INFERENCE_URL.removesuffix("/v1")
    assert "not as Tessera" in failure(checks_web.public_url())


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("SECRET_KEY", "short", "secret key"),
        ("SECRET_KEY", "django-insecure-" + "x" * 60, "secret key"),
        ("FIELD_KEYS", [], "field keys"),
        ("FIELD_KEYS", ["no fernet key"], "field keys"),
    ],
)
def test_weak_secrets_are_named(settings: Settings, name: str, value: object, check: str) -> None:
    setattr(settings, name, value)
    found = {row.name: row for row in checks_web.secrets()}
    assert failure(found[check])
    assert "x" * 60 not in found[check].message


def test_mail_and_https_are_asked_for_in_production(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    settings.PUBLIC_URL = "http://tessera.example"
    assert "EMAIL_HOST" in failure(checks_web.smtp())
    states = {check.name: check.state for check in checks_web.production_settings()}
    assert states == {"debug": "ok", "https": "failed"}


@pytest.mark.django_db
def test_clocks_on_one_machine_agree() -> None:
    assert checks_web.clock().state == "ok"


@pytest.mark.django_db
@pytest.mark.usefixtures("no_broker")
def test_one_line_each_and_an_exit_code() -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("doctor", "--json", stdout=out)
    rows = {row["name"]: row for row in map(json.loads, out.getvalue().splitlines())}
    assert caught.value.code == 1
    assert (rows["database"]["state"], rows["broker"]["state"]) == ("ok", "failed")
    assert rows["queues"]["state"] == "skipped"
    assert all(row["message"].endswith((".", ";", "ingest")) for row in rows.values() if row["state"] != "ok")


@pytest.mark.django_db
def test_what_depends_on_a_dead_database_is_skipped() -> None:
    connection.close()
    parts = connection.settings_dict
    before, parts["PORT"] = parts["PORT"], "9"
    try:
        # The eight checks that ask the database come first.
        found = {check.name: check for check in islice(doctor(_celery(), production=False), 8)}
    finally:
        parts["PORT"] = before
        connection.close()
    assert "correct DATABASE_URL" in failure(found["database"])
    skipped = {name for name, check in found.items() if check.state == "skipped"}
    assert skipped == {
        "pgvector",
        "migrations",
        "database role",
        "documents",
        "currency",
        "embedder",
        "chat server",
    }


@pytest.mark.django_db(transaction=True)
def test_every_chat_server_is_asked(chat_target: Target) -> None:
    away = backend_put(name="Away", kind="openai-compatible", base_url="http://127.0.0.1:9/v1", api_key="")
    row, _ = deployment_put(
        backend=away, upstream_model="m", public_name="m", purpose="chat", price_key="chat/m", priority=1
    )
    price_set(price_key=row.price_key, rates=CHAT_PRICE, approved_by="tests")
    found = {check.message.partition(":")[0]: check.state for check in checks_models.chat()}
    well = f"{chat_target.name} answers, reports usage; its window is 4096 tokens."
    assert found == {"Away": "failed", well: "ok"}

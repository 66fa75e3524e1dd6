"""Health, metrics and the documentation pages."""

from typing import Any

import pytest
import redis
from django.db import connection
from rest_framework.test import APIClient

from app.api.views import system
from app.catalog.models import Backend
from app.chat import runs
from app.common import redis_door
from app.common.queues import clock_claim, queues_claim
from tests.factories import key_make, user_make


@pytest.fixture
def broker_away(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_door.sync_redis.cache_clear()
    yield
    redis_door.sync_redis.cache_clear()


@pytest.fixture
def database_away(transactional_db):
    """Nothing listens where the database should be."""
    port = connection.settings_dict["PORT"]
    connection.close()
    connection.settings_dict["PORT"] = "1"
    yield
    connection.settings_dict["PORT"] = port


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_healthz_touches_nothing(path, broker_away):
    # No database either: pytest refuses any query of a test that did not ask for it.
    answer = APIClient().get(path)
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/readyz", "/readyz/"])
def test_readyz_is_ready_on_the_real_parts(path, broker, chat_target, settings):
    queues_claim(settings.QUEUES, "a worker")
    clock_claim()
    answer = APIClient().get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.django_db
def test_readyz_names_what_is_away_behind_a_process_that_works(broker, chat_target, settings):
    """Field fault B15: the worker or the embedder is stopped; the chat still works and the health page says which."""
    queues_claim(["default", "ingest.small"], "a worker")
    Backend.objects.filter(name="Test embedding server").update(base_url="http://127.0.0.1:9/v1")
    answer = APIClient().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    parts = {part["part"]: part["message"] for part in answer.json()["parts"]}
    assert list(parts) == ["embedder", "queue ingest", "beat"]
    assert "Test embedding server does not answer" in parts["embedder"]
    assert "No worker for queue ingest" in parts["queue ingest"]
    assert "The clock (beat) does not run" in parts["beat"]


@pytest.mark.django_db
def test_readyz_names_the_broker(broker_away):
    answer = APIClient().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"]["detail"] == {"part": "broker"}
    assert answer["Retry-After"]


def test_readyz_and_the_api_name_the_database(database_away):
    for path in ("/readyz", "/api/v1/me/"):
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION="Bearer tsr_any")
        answer = client.get(path)
        assert answer.status_code == 503
        error = answer.json()["error"]
        assert (error["code"], error["detail"], error["retryable"]) == (
            "database_unavailable",
            {"part": "database"},
            True,
        )


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["servers", "speed", "knowledge"])
def test_the_pages_for_who_runs_it_name_what_is_away(broker_away, client, page):
    client.force_login(user_make(is_staff=True))
    answer = client.get(f"/dashboard/{page}/")
    assert answer.status_code == 200
    assert "The broker (Valkey) does not answer." in answer.content.decode()


def test_a_page_names_the_database_too(database_away):
    client = APIClient(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    answer = client.get("/dashboard/", HTTP_ACCEPT="text/html,*/*")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "<h1>The database does not answer</h1>" in answer.content.decode()
    # Its scripts ask with the session too, and who that is cannot be read.
    for path in ("/readyz", "/api/v1/me/", "/dashboard/"):
        answer = client.get(path, HTTP_ACCEPT="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "database_unavailable")


@pytest.mark.django_db
def test_a_page_that_fails_otherwise_names_the_id_that_the_log_has_it_under(monkeypatch):
    monkeypatch.setattr(system, "_check_database", lambda: 1 / 0)
    answer = APIClient(raise_request_exception=False).get("/readyz", HTTP_ACCEPT="text/html")
    assert answer.status_code == 500
    assert "The web server failed on this page" in answer.content.decode()
    assert answer["X-Request-Id"] in answer.content.decode()


@pytest.mark.django_db
def test_readyz_names_migrations_that_are_missing(monkeypatch):
    monkeypatch.setattr(system, "_schema_is_current", False)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'api'")
    answer = APIClient().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"]["detail"] == {"part": "migrations"}
    assert "manage.py migrate" in answer.json()["error"]["message"]


@pytest.mark.django_db
def test_readyz_refuses_while_the_process_goes_down(monkeypatch):
    going = runs.Runs()
    going.draining = True
    monkeypatch.setitem(runs._current, object(), going)
    answer = APIClient().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "restarting"
    assert answer["Retry-After"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("where", "bearer", "status"),
    [
        ({}, None, 200),
        ({"REMOTE_ADDR": "10.0.0.7"}, None, 403),
        ({"HTTP_X_FORWARDED_FOR": "10.0.0.7"}, None, 403),
        ({"REMOTE_ADDR": "10.0.0.7"}, "scrape-me", 200),
        ({"REMOTE_ADDR": "10.0.0.7"}, "scrape-you", 403),
        ({"REMOTE_ADDR": "10.0.0.7"}, "staff", 200),
        ({"REMOTE_ADDR": "10.0.0.7"}, "person", 403),
    ],
)
def test_metrics_are_for_this_machine_staff_and_the_token(settings, where, bearer, status):
    settings.METRICS_TOKEN = "scrape-me"
    staff, person = user_make(is_staff=True), user_make()
    keys = {
        "staff": key_make(user=staff, team=staff.default_team, scopes=("staff",)).plain,
        "person": key_make(user=person, team=person.default_team).plain,
    }
    headers: dict[str, Any] = where | (
        {"HTTP_AUTHORIZATION": f"Bearer {keys.get(bearer, bearer)}"} if bearer else {}
    )
    assert APIClient().get("/metrics", **headers).status_code == status


@pytest.mark.django_db
def test_without_a_token_an_empty_bearer_opens_nothing(settings):
    settings.METRICS_TOKEN = ""
    answer = APIClient().get("/metrics", REMOTE_ADDR="10.0.0.7", HTTP_AUTHORIZATION="Bearer ")
    assert answer.status_code == 403


@pytest.mark.django_db
def test_metrics_count_what_waits(broker: redis.Redis):
    broker.rpush("ingest", "a", "b")
    text = APIClient().get("/metrics").content.decode()
    assert 'tessera_queue_length{queue="ingest"} 2.0' in text
    assert "tessera_turns_running 0.0" in text


@pytest.mark.django_db
def test_metrics_say_unknown_without_the_broker(broker_away):
    assert 'tessera_queue_length{queue="ingest"} -1.0' in APIClient().get("/metrics").content.decode()


def test_the_documentation_loads_only_what_is_ours():
    page = APIClient().get("/api/v1/docs/")
    assert page.status_code == 200
    assert "http://" not in page.content.decode().replace("http://testserver", "").replace(
        "http://www.w3.org", ""
    )
    assert "https://" not in page.content.decode()
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert "<script>" not in page.content.decode()

"""What operators see of the stream tier: figures of calls, the trace, and where the time went. Labels stay few."""

import re

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from app.api import metrics
from app.audit.services import Verb, audit
from app.billing.services import reservation_hold
from app.billing.types import Hold, Payer
from app.catalog.models import Backend
from app.catalog.selectors import Target
from app.celery import app as celery
from app.common.meters import REGISTRY
from app.common.models import uuid7
from inference_client.testing.fault_server import Script
from retrieval.tasks import documents_requeue_expired
from tests.api.scripted import call
from tests.factories import IssuedKey

pytestmark = pytest.mark.django_db
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def scraped() -> str:
    return APIClient().get("/metrics").content.decode()


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def chat_body(chat_target: Target) -> dict[str, object]:
    return {"model": chat_target.public_name, "messages": [{"role": "user", "content": "planted-word hello"}]}


def test_a_call_is_counted_traced_and_timed(
    chat_target: Target, api_key: IssuedKey, chat_body: dict[str, object]
) -> None:
    model = chat_target.public_name
    of = {"model": model, "operation": "chat", "kind": "output"}
    before = counted("tessera_tokens_total", **of)
    asked = counted("tessera_http_requests_total", route="chat_completions", status="200")
    trace = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
    answer, seen = call("POST", "/v1/chat/completions", Script(), key=api_key, json=chat_body, headers=trace)
    assert answer.status_code == 200, answer.text
    assert counted("tessera_tokens_total", **of) - before == answer.json()["usage"]["completion_tokens"] > 0
    assert counted("tessera_http_requests_total", route="chat_completions", status="200") == asked + 1
    assert counted("tessera_time_to_first_token_seconds_count", model=model) > 0
    assert counted("tessera_model_call_seconds_count", model=model, operation="chat", outcome="completed") > 0
    sent = {name.lower(): value for name, value in dict(seen[0].headers).items()}
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-01", sent["traceparent"])
    assert sent["tracestate"] == "vendor=1"
    stages = dict(re.findall(r"(\w+);dur=([\d.]+)", answer.headers["server-timing"]))
    assert {"total", "reserve", "settle"} <= stages.keys()
    assert sum(float(ms) for name, ms in stages.items() if name != "total") <= float(stages["total"]) + 1


def test_a_server_elsewhere_sees_no_state_of_others(api_key: IssuedKey, chat_body: dict[str, object]) -> None:
    Backend.objects.update(leaves_premises=True)
    trace = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
    answer, seen = call("POST", "/v1/chat/completions", Script(), key=api_key, json=chat_body, headers=trace)
    assert answer.status_code == 200, answer.text
    assert "tracestate" not in {name.lower() for name in dict(seen[0].headers)}


def test_a_page_says_how_long_it_took(client: object) -> None:
    assert re.fullmatch(r"total;dur=\d+\.\d", APIClient().get("/healthz")["Server-Timing"])


@pytest.mark.usefixtures("broker")
def test_the_books_the_queue_and_the_backup(api_key: IssuedKey, chat_target: Target) -> None:
    payer = Payer(team_id=api_key.row.team_id, account_id=api_key.row.user.account_id, key_id=api_key.row.id)
    hold = Hold(
        reservation_id=uuid7(), payer=payer, kind="chat", deployment_id=chat_target.deployment_id,
        price_key=chat_target.price_key, input_tokens=10, output_tokens=10,
    )  # fmt: skip
    assert "\ntessera_backup_age_seconds " not in scraped()
    metrics._installation.forget()
    reservation_hold(hold=hold)
    audit(Verb.BACKUP)
    documents_requeue_expired.apply_async(queue="default")
    # By its name alone, as an upload is handed on.
    celery.send_task("retrieval.tasks.document_ingest", [str(uuid7())], queue="ingest")
    text = scraped()
    assert "\ntessera_reservations_open 1.0" in text
    assert "\ntessera_ledger_lag_seconds 0.0" in text
    age = re.search(r"\ntessera_backup_age_seconds ([\d.e-]+)", text)
    assert age and float(age[1]) < 60
    for queue in ("default", "ingest"):
        assert f'tessera_queue_length{{queue="{queue}"}} 1.0' in text
        oldest = re.search(rf'tessera_queue_oldest_seconds{{queue="{queue}"}} ([\d.e-]+)', text)
        assert oldest and float(oldest[1]) < 60


def test_labels_are_few_and_name_nobody(
    api_key: IssuedKey, chat_target: Target, chat_body: dict[str, object]
) -> None:
    call("POST", "/v1/chat/completions", Script(), key=api_key, json=chat_body)
    call_command("check", verbosity=0)
    text = scraped()
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {
        "route", "status", "model", "operation", "outcome", "kind", "reason", "server", "state", "queue", "le",
        "generation", "implementation", "major", "minor", "patchlevel", "version",
    }  # fmt: skip
    values = " ".join(re.findall(r'="([^"]*)"', text))
    for own in (
        api_key.row.user.email,
        str(api_key.row.user.account_id),
        str(api_key.row.id),
        "planted-word",
    ):
        assert own not in values
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", values)

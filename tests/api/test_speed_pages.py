"""Speed and servers: what staff read there is what was measured; nobody else reads it."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from app.catalog.models import Backend, Deployment, LoadSample
from app.catalog.services import backend_put, deployment_put
from app.chat.models import TurnTiming
from app.common.clock import now
from app.common.models import uuid7
from tests.factories import user_make

pytestmark = pytest.mark.django_db
PAGES = ("/dashboard/speed/", "/dashboard/servers/")


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


@pytest.fixture
def served() -> Deployment:
    backend = backend_put(name="rack", kind="vllm", base_url="http://127.0.0.1:9/v1")
    return deployment_put(
        backend=backend, upstream_model="org/big", purpose="chat", public_name="big", price_key="chat/big"
    )[0]


def took(deployment_id: UUID, *, at: datetime | None = None, **figures: Any) -> TurnTiming:
    """A turn's row; figures not named are ordinary."""
    stages = figures.pop("stages", {"precount": 5.0, "first_token": 195.0, "decode": 800.0})
    known: dict[str, Any] = {
        "id": uuid7(),
        "ended_at": at or now() - timedelta(minutes=1),
        "team_id": uuid7(),
        "request_id": "req-1",
        "model": "big",
        "served_by": "big",
        "deployment_id": deployment_id,
        "state": "done",
        "error": "",
        "calls": 1,
        "input_tokens": 500,
        "output_tokens": 80,
        "ttft_ms": 200.0,
        "total_ms": sum(stages.values()),
        "itl_ms": 10.0,
        "tokens_per_second": 100.0,
        "stages": stages,
    }
    return TurnTiming.objects.create(**known | figures)


@pytest.mark.parametrize("path", PAGES)
def test_only_staff_may_look(client: Client, path: str) -> None:
    assert client.get(path).status_code == 302
    client.force_login(user_make())
    assert client.get(path).status_code == 403


@pytest.mark.parametrize("path", PAGES)
def test_an_empty_installation_says_so(staff: Client, path: str) -> None:
    answer = staff.get(path)
    assert answer.status_code == 200
    assert b"No turn was answered" in answer.content or b"No inference server is connected" in answer.content


def test_figures_are_those_of_the_rows(staff: Client, served: Deployment) -> None:
    for ttft in (100.0, 200.0, 300.0):
        took(served.id, ttft_ms=ttft)
    took(
        served.id,
        state="failed",
        ttft_ms=None,
        error="chat_server_failed",
        calls=2,
        tokens_per_second=None,
        itl_ms=None,
    )
    took(served.id, model="dearer", input_tokens=5000, ttft_ms=900.0)
    took(served.id, at=now() - timedelta(days=3), ttft_ms=5000.0)
    speed = staff.get("/dashboard/speed/?span=24h").context["speed"]
    assert (speed.whole.turns, speed.whole.failed, speed.whole.retried, speed.whole.fell_back) == (5, 1, 1, 1)
    assert speed.whole.ttft[0] == 250.0
    assert [(row.name, row.server) for row in speed.rows] == [("big", "rack")]
    assert [(name, turns) for name, turns, _ in speed.sizes] == [("<1k", 3), ("4–16k", 1)]
    assert [column.turns for column in speed.chart.measured] == [4]
    assert speed.chart.measured[0].total == pytest.approx(1000.0)
    assert [lost.back_after_s for lost in speed.lost] == [None]


def test_a_model_that_came_back_tells_after_how_long(staff: Client, served: Deployment) -> None:
    moment = now() - timedelta(minutes=10)
    took(served.id, at=moment)
    for second in (1, 3):
        took(served.id, at=moment + timedelta(seconds=second), state="failed")
    took(served.id, at=moment + timedelta(seconds=9))
    (lost,) = staff.get("/dashboard/speed/").context["speed"].lost
    assert (lost.failed, lost.back_after_s) == (2, pytest.approx(8.0))


def test_what_grew_is_named_on_the_page(staff: Client, served: Deployment) -> None:
    for hour in range(2, 8):
        took(served.id, at=now() - timedelta(hours=hour))
    for second in range(6):
        took(
            served.id,
            at=now() - timedelta(seconds=second + 1),
            stages={"precount": 5.0, "embed": 900.0, "first_token": 195.0, "decode": 800.0},
        )
    page = staff.get("/dashboard/speed/").content.decode()
    assert 'data-cause="slow_embedder"' in page
    assert "The embedder is slow" in page


def test_a_request_id_leads_to_its_waterfall(staff: Client, served: Deployment) -> None:
    row = took(served.id, request_id="abc-1")
    answer = staff.get("/dashboard/speed/find/?id=abc-1", follow=True)
    assert answer.redirect_chain[-1][0].endswith(f"/speed/turns/{row.id}/")
    assert [(step.name, step.x) for step in answer.context["steps"]] == [
        ("precount", 0), ("first_token", 5), ("decode", 200),
    ]  # fmt: skip
    assert staff.get(f"/dashboard/speed/find/?id={row.id}", follow=True).status_code == 200
    missed = staff.get("/dashboard/speed/find/?id=%3Cb%3Enobody", follow=True).content
    assert b"&lt;b&gt;nobody" in missed
    assert staff.get(f"/dashboard/speed/turns/{uuid7()}/").status_code == 404


def test_servers_show_their_load_and_what_is_left_without_one(staff: Client, served: Deployment) -> None:
    other = backend_put(name="spare", kind="vllm", base_url="http://127.0.0.1:8/v1")
    deployment_put(
        backend=other,
        upstream_model="org/big",
        purpose="chat",
        public_name="big",
        price_key="chat/big",
        slots=2,
    )
    figures = {"running": 3.0, "waiting": 1.0, "kv_cache_share": 0.5, "round_trip_s": 0.012}
    LoadSample.objects.create(backend=served.backend, taken_at=now(), figures=figures)
    LoadSample.objects.create(backend=other, taken_at=now(), problem="Its page of figures answers 404.")
    moment = now() - timedelta(hours=1)
    for second in (0.0, 0.5, 0.9):
        took(served.id, at=moment + timedelta(seconds=second))
    took(served.id, at=moment + timedelta(seconds=10))
    answer = staff.get("/dashboard/servers/")
    rack, spare = answer.context["servers"]
    assert (rack.tone, dict(rack.figures)["KV cache"]) == ("good", "50%")
    assert (spare.tone, spare.words) == ("warn", "Its page of figures answers 404.")
    (offer,) = answer.context["offers"]
    assert (offer.peak, offer.slots, sorted(offer.without)) == (3, 10, [("rack", 2), ("spare", 8)])


def test_draining_sends_new_calls_elsewhere_and_is_undone(staff: Client, served: Deployment) -> None:
    path = f"/dashboard/servers/{served.id}/switch/"
    assert b"takes no new calls" in staff.post(path, follow=True).content
    served.refresh_from_db()
    assert not served.enabled
    assert b"takes calls again" in staff.post(path, {"on": "yes"}, follow=True).content
    served.refresh_from_db()
    assert served.enabled


def test_a_test_call_says_what_is_wrong(staff: Client, served: Deployment) -> None:
    page = staff.post(f"/dashboard/servers/{served.id}/try/", follow=True).content.decode()
    assert "big on rack:" in page
    assert "callout bad" in page
    Backend.objects.update(enabled=False)
    assert b"switched off" in staff.post(f"/dashboard/servers/{served.id}/try/", follow=True).content


def test_others_switch_and_try_nothing(client: Client, served: Deployment) -> None:
    client.force_login(user_make())
    for action in ("try", "switch"):
        assert client.post(f"/dashboard/servers/{served.id}/{action}/").status_code == 403
    served.refresh_from_db()
    assert served.enabled

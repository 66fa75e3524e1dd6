"""The servers' own figures: read side by side, in one shape, kept for a while; one that is away hinders no other."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings

from app.catalog.models import Backend, LoadSample
from app.catalog.services import backend_put
from app.catalog.telemetry import KEPT, load_series, loads_latest, loads_scrape, page_of
from app.common.clock import now
from inference_client.testing.fault_server import FaultServer, Script

pytestmark = pytest.mark.django_db

VLLM = """
vllm:num_requests_running{model_name="m"} 3.0
vllm:num_requests_waiting{model_name="m"} 2.0
vllm:kv_cache_usage_perc{model_name="m"} 0.25
vllm:generation_tokens_total{model_name="m"} %d
"""
DCGM = 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 80\nDCGM_FI_DEV_GPU_UTIL{gpu="1"} 40\n'


def page(text: str, **options: Any) -> Script:
    return Script(body=(text.encode(),), content_type="text/plain", **options)


def scraped(*scripts: Script, **row: Any) -> tuple[int, Backend, list[Any]]:
    """Read the pages of one scripted server, once."""

    async def inside() -> tuple[int, Backend, list[Any]]:
        async with FaultServer(*scripts) as server:
            backend = await _put(server.url, row)
            return await _scrape(), backend, list(server.seen)

    return async_to_sync(inside)()


async def _put(url: str, row: dict[str, Any]) -> Backend:
    def put() -> Backend:
        kind = row.get("kind", "vllm")
        backend = backend_put(name="scripted", kind=kind, base_url=f"{url}/v1", api_key="server-key")
        backend.options = {name: value.format(url=url) for name, value in row.get("options", {}).items()}
        backend.save()
        return backend

    return await sync_to_async(put)()


async def _scrape() -> int:
    return await sync_to_async(loads_scrape)()


def test_a_page_becomes_one_shape_with_rates_since_the_last() -> None:
    good, backend, seen = scraped(page(VLLM % 1000))
    assert good == 1
    assert seen[0].path == "/metrics"
    assert seen[0].headers["authorization"] == "Bearer server-key"
    LoadSample.objects.update(taken_at=now() - timedelta(seconds=10))
    scraped(page(VLLM % 1500))
    load = loads_latest()[backend.id]
    assert {name: load.figures[name] for name in ("running", "waiting", "kv_cache_share")} == {
        "running": 3, "waiting": 2, "kv_cache_share": 0.25,
    }  # fmt: skip
    assert load.figures["output_tokens_per_s"] == pytest.approx(50, rel=0.2)
    assert 0 < load.figures["round_trip_s"] < 5


def test_figures_elsewhere_join_in_and_never_see_the_key() -> None:
    _, backend, seen = scraped(page(VLLM % 1), page(DCGM), options={"metrics_url": "{url}/gpu"})
    assert loads_latest()[backend.id].figures["gpu_share"] == pytest.approx(0.6)
    (gpu,) = [request for request in seen if request.path == "/gpu"]
    assert "authorization" not in gpu.headers


@pytest.mark.parametrize(
    ("script", "words"),
    [(page("", status=501), "answers 501"), (Script(answers=False, ending="reset"), "cannot be called")],
)
def test_a_page_that_cannot_be_read_says_why(script: Script, words: str) -> None:
    good, backend, _ = scraped(script)
    assert good == 0
    assert words in loads_latest()[backend.id].problem


@pytest.mark.parametrize(("kind", "urls"), [("openai", 0), ("ollama", 0), ("no-such-kind", 0), ("tgi", 1)])
def test_only_servers_with_a_page_are_asked(kind: str, urls: int) -> None:
    assert len(page_of(backend_put(name="x", kind=kind, base_url="http://h:1/v1")).urls) == urls


def test_a_real_server_is_read_and_old_samples_go() -> None:
    backend = backend_put(
        name="real", kind=settings.INFERENCE_KIND, base_url=settings.INFERENCE_URL, api_key=settings.INFERENCE_API_KEY
    )  # fmt: skip
    old = LoadSample.objects.create(backend=backend, taken_at=now() - KEPT - timedelta(minutes=1))
    assert loads_scrape() == 1
    assert not LoadSample.objects.filter(id=old.id).exists()
    series = load_series(backend.id, ["running", "nothing"], since=now() - timedelta(minutes=5))
    assert len(series["running"]) == 1
    assert series["nothing"] == []

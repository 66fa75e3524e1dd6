"""The routes as the running product answers them: its own web server, worker and broker."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.live
PATIENCE_SECONDS = 60
TEXT = b"The blue pump delivers forty litres a minute. The red valve closes at noon."


@pytest.fixture(scope="module")
def http(live_stack: dict[str, Any]):
    headers = {"Authorization": f"Bearer {live_stack['api_key']}"}
    with httpx.Client(base_url=live_stack["url"], headers=headers, timeout=30) as client:
        yield client


def _until(ready: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := ready()) is None:
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.2)
    return found


def test_health_and_who_i_am(http, live_stack):
    assert http.get("/healthz").text == "ok\n"
    # The last worker may say a moment after the web server that it is there.
    ready = _until(lambda: found if (found := http.get("/readyz").json())["status"] == "ready" else None)
    assert ready == {"status": "ready"}
    assert http.get("/api/v1/me").json()["email"] == live_stack["admin_email"]
    assert "tessera_turns_running" in http.get("/metrics").text


def test_a_wrong_key_is_refused_and_the_request_can_be_found_again(http):
    answer = http.get("/api/v1/me/", headers={"Authorization": "Bearer tsr_wrong"})
    assert answer.status_code == 401
    assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]


def test_an_upload_becomes_ready_and_is_found(http):
    made = http.post("/api/v1/collections/", json={"name": "Pumps"}).json()
    answer = http.post(f"/api/v1/collections/{made['id']}/documents/", files={"file": ("pumps.txt", TEXT)})
    assert answer.status_code == 202
    assert answer.json()["warning"] is None
    location = answer.headers["location"]

    def ended() -> dict[str, Any] | None:
        shown: dict[str, Any] = http.get(location).json()
        return shown if shown["status"] in {"ready", "failed"} else None

    document = _until(ended)
    assert document["status"] == "ready", document["error"]
    question = {"query": "How much does the blue pump deliver?", "collections": [made["id"]]}
    found = http.post("/api/v1/search/", json=question).json()["items"]
    assert "forty litres" in found[0]["text"]
    spent = http.get("/api/v1/usage/", params={"group_by": "kind", "all": "true"}).json()["items"]
    assert "embedding" in {item["group"] for item in spent}


@pytest.mark.parametrize("size", [60_000_000, 100_000_000])
def test_a_huge_upload_is_refused_with_the_limit(http, size):
    made = http.post("/api/v1/collections/", json={"name": f"Huge {size}"}).json()
    files = {"file": ("huge.txt", b"\0" * size)}
    answer = http.post(f"/api/v1/collections/{made['id']}/documents/", files=files)
    assert answer.status_code == 413
    assert answer.json()["error"]["detail"]["limit_bytes"] == 50_000_000


def test_the_documentation_page_and_its_assets_are_served(http):
    page = http.get("/api/v1/docs/")
    assert page.status_code == 200
    assert http.get("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css").status_code == 200

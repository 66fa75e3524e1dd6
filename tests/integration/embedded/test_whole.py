"""The whole product as a person starts it. Slow to start, so everything is asked of one stack."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.services_plugin import command

pytestmark = pytest.mark.live


def get(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        return exc.code
    except OSError:
        return 0


def web_process(live_stack: dict[str, Any]) -> int:
    """The web server that listens on this stack's port."""
    port = live_stack["url"].rstrip("/").rpartition(":")[2]
    pattern = f"uvicorn app.asgi:application.*--port {port}"
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


def data_of(live_stack: dict[str, Any]) -> Path:
    """The stack's data directory, as its processes carry it."""
    environment = Path(f"/proc/{web_process(live_stack)}/environ").read_bytes().split(b"\0")
    (found,) = (word for word in environment if word.startswith(b"TESSERA_DATA="))
    return Path(found.partition(b"=")[2].decode())


def test_doctor_finds_everything_well_but_what_production_needs(live_stack: dict[str, Any]) -> None:
    done = command("doctor", "--json", "--production", env={"TESSERA_DATA": str(data_of(live_stack))})
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    unwell = {name: row["message"] for name, row in rows.items() if row["state"] != "ok"}
    assert set(unwell) == {"https", "mail"}, unwell
    named = {
        "embedder",
        "chat server",
        "queue default",
        "queue ingest",
        "public URL",
        "streaming",
        "database role",
    }
    assert named <= set(rows)
    assert "reports usage; its window is 4096 tokens" in rows["chat server"]["message"]
    assert done.returncode == 1


@pytest.mark.live(alone=True)
def test_a_killed_web_server_comes_back_at_the_same_address(live_stack: dict[str, Any]) -> None:
    url = live_stack["url"]
    assert get(f"{url}readyz") == 200
    os.kill(web_process(live_stack), signal.SIGKILL)
    deadline = time.monotonic() + 60
    while get(f"{url}readyz") == 200 and time.monotonic() < deadline:
        time.sleep(0.02)
    while get(f"{url}readyz") != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert get(f"{url}api/v1/me/", Authorization=f"Bearer {live_stack['api_key']}") == 200

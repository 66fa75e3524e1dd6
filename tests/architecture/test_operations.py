"""Alerts, their runbook, and the guide to a production installation agree with the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus-alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n\n(.+?)(?=\n## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
METERS = "".join(
    (ROOT / path).read_text(encoding="utf-8") for path in ("app/common/meters.py", "app/api/metrics.py")
)
_NAME = r"tessera_[a-z_]+"


def _known() -> set[str]:
    """Every name that a metric can have in PromQL."""
    families = re.findall(rf"(Counter|Histogram|Gauge)\(\s*\"({_NAME})\"", METERS)
    names = {name if kind == "Gauge" else f"{name}_total" for kind, name in families if kind != "Histogram"}
    names |= {
        f"{n}_{part}" for kind, n in families if kind == "Histogram" for part in ("bucket", "count", "sum")
    }
    return names | set(re.findall(rf"_(?:gauge|family)\(\s*\"({_NAME})\"", METERS))


def _named(text: str) -> set[str]:
    return set(re.findall(rf"\b{_NAME}\b", text))


def test_the_code_has_metrics() -> None:
    assert {
        "tessera_tokens_total",
        "tessera_time_to_first_token_seconds_bucket",
        "tessera_outbox",
    } <= _known()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_its_section_and_names_what_there_is(rule: dict[str, Any]) -> None:
    assert len(SECTIONS[rule["alert"]].split()) > 20
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"].endswith(".")
    assert _named(rule["expr"]) - _known() == set()
    assert _named(rule["expr"]) or 'job="tessera"' in rule["expr"]


def test_each_section_has_its_alert() -> None:
    assert set(SECTIONS) == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("path", ["docs/runbook.md", "docs/install.md"])
def test_metrics_and_commands_that_documents_name_exist(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert _named(text) - _known() - {"tessera_app", "tessera_owner"} == set()
    commands = {p.stem for p in ROOT.glob("app/*/management/commands/*.py")} | {
        "migrate",
        "createsuperuser",
        "check",
    }
    assert set(re.findall(r"manage\.py (\w+)", text)) - commands == set()


# ------------------------------------------------------------------------------------------------ the guide

GUIDE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
NGINX = (ROOT / "deploy/proxy/nginx.conf").read_text(encoding="utf-8")
CADDY = (ROOT / "deploy/proxy/Caddyfile").read_text(encoding="utf-8")


def test_the_guide_names_each_service_and_volume_and_no_other() -> None:
    for name in COMPOSE["services"]:
        assert f"`{name}`" in GUIDE, name
    table = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    assert set(table) == set(COMPOSE["volumes"])
    asked = re.findall(r"docker compose run --rm (?:--volume \S+ )?([a-z][a-z-]*)", GUIDE)
    assert set(asked) <= set(COMPOSE["services"])
    assert {"web", "operations", "migrate"} <= set(asked)


def test_the_guide_names_variables_that_there_are_and_all_secrets() -> None:
    known = set(re.findall(r"^#?([A-Z][A-Z0-9_]*)=", EXAMPLE, re.MULTILINE))
    named = set(re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", GUIDE))
    assert named - known - {"NAME_FILE"} == set()
    must = set(re.findall(r"\$\{([A-Z_]+):\?", (ROOT / "docker-compose.yml").read_text(encoding="utf-8")))
    assert must - {"EMBEDDING_API_KEY"} <= named


def test_the_proxies_hold_nothing_back_and_believe_no_caller() -> None:
    assert "proxy_buffering off;" in NGINX and "flush_interval -1" in CADDY
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in NGINX
    assert "header_up X-Forwarded-For {remote_host}" in CADDY
    (silence,) = re.findall(r"proxy_read_timeout (\d+)s;", NGINX)
    assert int(silence) > 2 * 15, "a comment comes every fifteen seconds"
    (upload,) = re.findall(r"^UPLOAD_MAX_BYTES=(\d+)", EXAMPLE, re.MULTILINE)
    for size in (
        *re.findall(r"client_max_body_size (\d+)m;", NGINX),
        *re.findall(r"max_size (\d+)MB", CADDY),
    ):
        assert int(size) * 1_000_000 > int(upload)
    # A question that may have been asked would be asked and paid for twice.
    directives = [line.strip() for line in NGINX.splitlines() if not line.strip().startswith("#")]
    assert not any("non_idempotent" in line for line in directives)
    for text in (NGINX, CADDY):
        assert "/metrics" in text

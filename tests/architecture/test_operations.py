"""Alerts, their runbook, and the guide to a production installation agree with the code."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from app.embedded.product import Product, beat_program, web_program, worker_program

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
    places = (*ROOT.glob("app/*/management/commands/*.py"), *ROOT.glob("retrieval/management/commands/*.py"))
    commands = {p.stem for p in places} | {"migrate", "createsuperuser", "check"}
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


# ------------------------------------------------------------------------------------------ units and proxies

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
ALERTS = ROOT / "deploy/prometheus-alerts.yml"


def _found(name: str) -> str:
    """Where a checker is; Debian puts some where only root's PATH looks."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program


def _said(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """With this interpreter in the place of the installed one, which a checking machine has not."""
    program, units = _found("systemd-analyze"), []
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/tessera/.venv/bin/python", sys.executable)
        text = re.sub(r"^(User|Group|WorkingDirectory|EnvironmentFile)=.*\n", "", text, flags=re.MULTILINE)
        units.append(tmp_path / unit.name.replace("@", "@8000"))
        units[-1].write_text(text.replace("/opt/tessera/docs", str(ROOT / "docs")), encoding="utf-8")
    assert _said(program, "verify", *map(str, units)) == ""


def test_the_units_start_what_the_product_starts() -> None:
    text = {unit.name: unit.read_text(encoding="utf-8") for unit in UNITS}
    product = Product(port=8000, drain_seconds=600, queues={})
    for name, program in (
        ("tessera-web@.service", web_program(product)),
        ("tessera-worker@.service", worker_program("%i", ("%i",))),
        ("tessera-beat.service", beat_program()),
    ):
        words = shlex.split(re.findall(r"^ExecStart=(.*)$", text[name], re.MULTILINE)[0])
        assert set(program.argv[1:]) - {"%i@tessera", "8000", *words} == set(), name
        assert "Restart=always" in text[name]
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text["tessera-web@.service"], re.MULTILINE)
    assert int(stop) >= web_program(product).stop_seconds
    assert all(f"tessera-worker@{queue}" in GUIDE for queue in settings.QUEUES)
    assert all(f"`{unit.stem}`" in GUIDE for unit in UNITS)


def test_nginx_takes_the_sample(tmp_path: Path) -> None:
    program, openssl = _found("nginx"), _found("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "chain.pem"
    _said(
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
        "-subj", "/CN=tessera.example", "-keyout", str(key), "-out", str(certificate),
    )  # fmt: skip
    sample = NGINX.replace("/etc/ssl/tessera.example/fullchain.pem", str(certificate))
    sample = sample.replace("/etc/ssl/tessera.example/privkey.pem", str(key))
    # Debian's nginx of today knows `http2` as a part of `listen` alone.
    sample = (
        sample.replace("    http2 on;\n", "").replace("listen 80", "listen 18080").replace("443", "18443")
    )
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/nginx.pid;\nerror_log {tmp_path}/error.log;\nevents {{}}\nhttp {{\n{sample}\n}}\n"
    )
    assert "test is successful" in _said(
        program, "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)
    )


def test_prometheus_takes_the_alert_rules() -> None:
    assert "SUCCESS" in _said(_found("promtool"), "check", "rules", str(ALERTS))

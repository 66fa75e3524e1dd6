"""What stands around the code: settings and their documentation, manifests, locks, links."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tools.house import tree_of

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
EXAMPLE_NAMES = re.findall(r"^#?([A-Z][A-Z0-9_]*)=", EXAMPLE, re.MULTILINE)

# Read by the containers around Tessera, not by its settings.
FOR_CONTAINERS = {
    "POSTGRES_PASSWORD", "DATABASE_OWNER_PASSWORD", "DATABASE_APP_PASSWORD", "PORT", "TESSERA_VERSION",
    "MODEL_DIR", "MODEL_FILE", "MODEL_SLOTS", "MODEL_CONTEXT", "EMBEDDING_THREADS",
    "POSTGRES_SHARED_BUFFERS",
}  # fmt: skip
# Written by `up` for its own children, or other programs' names that are only looked at.
NOT_FOR_PEOPLE = {
    "INFERENCE_SLOTS", "INFERENCE_DEMONSTRATION", "OLLAMA_HOST", "PATH", "HOME", "DJANGO_SETTINGS_MODULE",
}  # fmt: skip
READERS = {"text", "number", "flag", "words", "one_of"}


def _sources() -> list[Path]:
    return [p for p in (ROOT / "app").rglob("*.py") if not {"migrations", "__pycache__"} & set(p.parts)]


def _string_argument(node: ast.Call) -> str | None:
    first = node.args[0] if node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _read_names() -> set[str]:
    """Every variable that a setting or `env.PROCESS` reads by name."""
    names = set()
    for path in _sources():
        for node in ast.walk(tree_of(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = ast.unparse(node.func.value)
            reads = (owner == "env" and node.func.attr in READERS) or (
                owner in {"env.PROCESS", "os.environ"} and node.func.attr == "get"
            )
            if reads and (name := _string_argument(node)):
                names.add(name)
    return names


def test_each_setting_has_its_line_in_the_example() -> None:
    assert _read_names() - set(EXAMPLE_NAMES) - NOT_FOR_PEOPLE == set()


def test_each_line_of_the_example_is_read_by_something() -> None:
    assert set(EXAMPLE_NAMES) - _read_names() - FOR_CONTAINERS == set()
    assert len(EXAMPLE_NAMES) == len(set(EXAMPLE_NAMES))


def test_each_variable_of_the_example_is_explained() -> None:
    lines = EXAMPLE.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"#?[A-Z][A-Z0-9_]*=", line):
            assert re.match(r"# [A-Za-z1-9]", lines[number - 1]), f"no explanation above: {line}"


def test_one_file_reads_the_environment() -> None:
    """Settings are read in one place; the entry points only name the settings module."""
    entry = {"app/asgi.py", "app/celery.py"}
    readers = set()
    for path in _sources():
        tree = tree_of(path.read_text(encoding="utf-8"))
        found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if found & {"os.environ", "os.getenv", "os.environb"}:
            readers.add(str(path.relative_to(ROOT)))
    assert readers - entry == {"app/settings/env.py"}


# ------------------------------------------------------------------------------------------------ containers


def test_compose_uses_only_documented_variables() -> None:
    used = set(
        re.findall(r"\$\{([A-Z][A-Z0-9_]*)", (ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    )
    assert used - set(EXAMPLE_NAMES) == set()


def test_compose_passes_on_only_what_is_read() -> None:
    passed = set(SERVICES["web"]["environment"])
    assert passed - _read_names() - {"DJANGO_SETTINGS_MODULE"} == set()


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_compose_service(name: str) -> None:
    service = SERVICES[name]
    image = service["image"]
    assert ":" in image and not image.endswith(":latest"), "pin the image by its tag"
    assert "healthcheck" in service or name == "web", "the web service has its check in the Dockerfile"
    assert {"migrate", "valkey", "postgres"} >= set(service.get("depends_on", {}))
    for published in service.get("ports", []):
        assert published.startswith("127.0.0.1:"), "publish on loopback; a proxy goes in front"
    for volume in service.get("volumes", []):
        source = volume.partition(":")[0]
        assert source.startswith((".", "$")) or source in COMPOSE["volumes"]


def test_a_stop_leaves_time_to_finish_answers() -> None:
    drain = int(re.findall(r"^DRAIN_SECONDS=(\d+)", EXAMPLE, re.MULTILINE)[0])
    assert int(SERVICES["web"]["stop_grace_period"].removesuffix("s")) > drain


def test_every_celery_queue_has_a_worker_in_compose() -> None:
    base = (ROOT / "app" / "settings" / "work.py").read_text(encoding="utf-8")
    names = re.findall(r"^(?:CELERY_TASK_DEFAULT_QUEUE|INGEST_QUEUE\b.*?) = (.+)$", base, re.MULTILINE)
    queues = set(re.findall(r'"([\w.]+)"', " ".join(names)))
    served: set[str] = set()
    for service in SERVICES.values():
        command = service.get("command", [])
        if "--queues" in command:
            served |= set(command[command.index("--queues") + 1].split(","))
    assert queues == served
    assert len(queues) == 3


def test_only_services_that_need_it_are_the_owner() -> None:
    owners = {
        name for name, service in SERVICES.items() if "tessera_owner:" in str(service.get("environment"))
    }
    # The second is started by hand, for backup and restore.
    assert owners == {"migrate", "operations"}
    assert SERVICES["operations"]["profiles"] == ["operations"]


# ----------------------------------------------------------------------------------------------------- locks


@pytest.mark.parametrize("name", ["base", "embedded", "dev", "model", "clients"])
def test_lock_is_pinned_hashed_and_complete(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries and all(
        re.match(r"[\w.-]+==\S+", entry) and "--hash=sha256:" in entry for entry in entries
    )
    locked = {entry.partition("==")[0] for entry in entries}
    wanted = (ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines()
    names = [re.split(r"[\[<>=!~ ;]", line)[0] for line in wanted if line and not line.startswith(("#", "-"))]
    shared = {"base": set(), "model": set()}.get(name, _locked("base"))
    assert {entry.lower() for entry in names} - locked - shared == set()


def _locked(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9][\w.-]*)==", text, re.MULTILINE))


def test_locks_agree_on_versions() -> None:
    seen: dict[str, set[str]] = {}
    for name in ("base", "embedded", "dev"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
        for package, version, marker in re.findall(
            r"^([a-z0-9][\w.-]*)==(\S+)(?: ; (.*?))? \\$", text, re.MULTILINE
        ):
            seen.setdefault(f"{package} {marker}", set()).add(version)
    assert {package: versions for package, versions in seen.items() if len(versions) > 1} == {}


# ---------------------------------------------------------------------------------------- documents, tracked


def _documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]


@pytest.mark.parametrize("path", _documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []


def test_every_page_is_listed() -> None:
    docs = ROOT / "docs"
    listed = set(re.findall(r"\]\((\S+\.md)\)", (docs / "README.md").read_text(encoding="utf-8")))
    assert listed == {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"README.md"}


def test_settings_named_in_documents_exist() -> None:
    known = set(EXAMPLE_NAMES) | NOT_FOR_PEOPLE | {"OLLAMA_CONTEXT_LENGTH", "TESSERA_SHARED", "KINDS", "SHA"}
    for path in (ROOT / "docs" / "handbook").glob("*.md"):
        named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)", path.read_text(encoding="utf-8")))
        assert named - known == set(), path.name


def _tracked_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_tracked", ROOT / "tools" / "check_tracked.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tracked_files_are_clean() -> None:
    done = subprocess.run(
        [sys.executable, "tools/check_tracked.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("see https://" + "py" + "pi.org" + "/simple", "a package registry's host"),
        ("cd " + "/ho" + "me/ann/tessera", "a path of one machine"),
        ("-----BEGIN RSA " + "PRIVATE KEY-----", "a private key"),
        ("OPENAI_API_KEY=" + "sk-proj-" + "a1" * 20, "a provider's key"),
        ("<" * 7 + " HEAD", "a merge conflict"),
        ("the /workspace and src/root/x are fine", None),
    ],
)
def test_the_tracked_check_sees_a_fault(tmp_path: Path, line: str, what: str | None) -> None:
    path = tmp_path / "sample.txt"
    path.write_text(f"first\n{line}\n", encoding="utf-8")
    found = _tracked_tool().finds(path)
    assert found == ([f"{path}:2: {what}"] if what else [])

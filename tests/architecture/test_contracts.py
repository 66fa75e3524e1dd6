"""The import contracts hold, are all there, and do catch a forbidden import."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "retrieval", "inference_client")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]

# Loosening the house takes a change here too.
EXPECTED = {
    "Tiers point downward: web, then retrieval, then inference": "layers",
    "Inside the web tier every Django app has a declared height": "layers",
    "Inside a Django app: urls, views, tasks, turn, services, selectors, models": "layers",
    "The inference client is a plain library": "forbidden",
    "Wire adapters, usage and routing do no IO": "forbidden",
    "Pure steps stay pure": "forbidden",
    "The ledger has one owner": "protected",
    "Every call that costs tokens passes the gate": "protected",
    "Underscore modules are private to their package": "private_modules",
    "No cycles between siblings": "acyclic_siblings",
    "HTTP leaves by three doors: the client, checked outbound calls, fetched URLs": "forbidden",
}

BREACHES = [
    ("inference_client/breach.py", "import django", "The inference client is a plain library"),
    ("retrieval/breach.py", "import app.common.clock", "Tiers point downward"),
    ("app/common/breach.py", "import app.billing.errors", "Inside the web tier"),
    ("app/dashboard/breach.py", "import app.billing.models", "The ledger has one owner"),
    ("app/chat/breach.py", "import inference_client.client", "Every call that costs tokens"),
    ("app/gate/breach.py", "import httpx", "HTTP leaves by three doors"),
]


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_all_contracts_are_there() -> None:
    assert {contract["name"]: contract["type"] for contract in CONTRACTS} == EXPECTED


# Modules that are pure wherever they come to stand, with the contract that keeps them so.
PURE = {
    "inference_client/adapters": "Wire adapters, usage and routing do no IO",
    "inference_client/usage.py": "Wire adapters, usage and routing do no IO",
    "inference_client/routing.py": "Wire adapters, usage and routing do no IO",
    "retrieval/types.py": "Pure steps stay pure",
    "retrieval/chunking.py": "Pure steps stay pure",
    "retrieval/stitching.py": "Pure steps stay pure",
    "app/billing/pricing.py": "Pure steps stay pure",
    "app/chat/precount.py": "Pure steps stay pure",
}


@pytest.mark.parametrize("path", PURE)
def test_a_pure_module_is_named_in_its_contract(path: str) -> None:
    contract = next(c for c in CONTRACTS if c["name"] == PURE[path])
    named = path.removesuffix(".py").replace("/", ".") in contract["source_modules"]
    assert named is (ROOT / path).exists()


def test_every_app_has_its_layers() -> None:
    layered = next(c for c in CONTRACTS if c["name"].startswith("Inside a Django app"))
    apps = {f"app.{path.parent.name}" for path in (ROOT / "app").glob("*/apps.py")} - {"app.common"}
    assert apps | {"retrieval"} == set(layered["containers"])


def test_the_contracts_hold() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.fixture(scope="module")
def broken_house(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on a copy of the house into which one breach of each kind was built."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, copy / package, ignore=shutil.ignore_patterns("static", "__pycache__")
        )
    for name, line, _ in BREACHES:
        (copy / name).write_text(f"{line}\n", encoding="utf-8")
    done = _lint(copy)
    assert done.returncode != 0
    return done.stdout


@pytest.mark.parametrize(("name", "line", "contract"), BREACHES, ids=[name for name, _, _ in BREACHES])
def test_a_breach_is_caught(broken_house: str, name: str, line: str, contract: str) -> None:
    verdicts = [row for row in broken_house.splitlines() if row.startswith(contract)]
    # Behind the verdict stands how many imports the contract leaves out.
    assert verdicts and " BROKEN" in verdicts[0]
    assert name.removesuffix(".py").replace("/", ".") in broken_house

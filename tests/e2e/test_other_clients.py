"""The official OpenAI client, LiteLLM and LangChain, unpatched, as they come: right answers, and no second attempt."""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.live import Live
from tests.stack import REPOSITORY, command

pytestmark = [pytest.mark.live, pytest.mark.prove]
LOCK = REPOSITORY / "requirements" / "clients.txt"
PROGRAM = Path(__file__).parent / "foreign" / "ask.py"
CLIENTS = ("openai", "litellm", "langchain")
POOR = """
from decimal import Decimal
from app.accounts.models import User
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, team_create
from app.billing.services import budget_set
owner = User.objects.filter(is_staff=True).first()
team = team_create(name="Poor", owner=owner)
budget_set(scope="team", unit="money", limit=Decimal(0), period="month", team_id=team.id)
print(key_create(name="poor", team_id=team.id, user_id=owner.id, scopes=list(ALL_SCOPES))[1])
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter with the clients of the lock, in an environment of their own."""
    folder = REPOSITORY / ".local" / "clients"
    mark, wanted = folder / ".installed", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "clients.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [
                str(folder / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "-qq",
                "--disable-pip-version-check",
            ]
            safe = ["--no-input", "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
            done = subprocess.run([*pip, *safe], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(
                    f"The clients could not be installed from {LOCK.name}: {done.stderr.strip()[-300:]}"
                )
            mark.write_text(wanted)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def models(live: Live) -> tuple[str, str]:
    names = dict(
        live.sql("SELECT purpose, public_name FROM catalog_deployment WHERE enabled ORDER BY id DESC")
    )
    return names["chat"], names["embedding"]


@pytest.fixture(scope="module")
def poor(live: Live) -> str:
    """A key of a team that may spend nothing."""
    done = command("shell", "-v", "0", "-c", POOR, env={"TESSERA_DATA": str(live.data)})
    assert done.returncode == 0, done.stdout
    return done.stdout.strip().splitlines()[-1]


def run(
    python: Path, live: Live, models: tuple[str, str], *, client: str, act: str, key: str = ""
) -> dict[str, Any]:
    """What a client got."""
    url = f"{live.run['url'].rstrip('/')}/v1"
    # Nothing of ours is on its path, and nothing of the machine's tells it where to go.
    env = {
        name: value for name, value in os.environ.items() if not re.match("PYTHON|OPENAI|LITELLM|LANG", name)
    }
    env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [str(python), str(PROGRAM), url, key or live.run["api_key"], *models, client, act],
        env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def requests_of(live: Live, handler: str) -> float:
    """How many requests this web process has answered on a stream route."""
    text = httpx.get(f"{live.run['url']}metrics", timeout=30).text
    rows = re.findall(rf'^tessera_http_requests_total{{.*"{handler}".*}} (\S+)$', text, re.MULTILINE)
    return sum(float(row) for row in rows)


def attempts(live: Live) -> int:
    return int(live.sql("SELECT count(*) FROM billing_usageattempt")[0][0])


def booked(live: Live, completion: str) -> Decimal:
    """Tokens of a completion in the ledger; of the newest one for a client that does not tell its id."""
    if "chatcmpl-" not in completion:
        newest = "SELECT input_tokens + output_tokens FROM billing_ledgerentry ORDER BY id DESC LIMIT 1"
        return Decimal(live.sql(newest)[0][0])
    turn = completion.rpartition("chatcmpl-")[2]
    query = (
        "SELECT coalesce(sum(e.input_tokens + e.output_tokens), 0) FROM billing_ledgerentry e "
        "JOIN billing_reservation r ON r.id = e.reservation_id WHERE r.turn_id = %s"
    )
    found: Decimal = live.sql(query, turn)[0][0]
    return found


@pytest.mark.parametrize("act", ["chat", "stream"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_an_answer_and_the_ledger_s_usage(
    live: Live, python: Path, models: Any, client: str, act: str
) -> None:
    told = run(python, live, models, client=client, act=act)
    assert told.get("text"), told
    assert told["used"] == booked(live, told["id"]) > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_embeddings_and_hears_why_tools_are_refused(
    live: Live, python: Path, models: Any, client: str
) -> None:
    told = run(python, live, models, client=client, act="embed")
    assert len(set(told["sizes"])) == 1, told
    assert len(told["sizes"]) == 2
    told = run(python, live, models, client=client, act="tools")
    # The packaged model knows no tools, which every client hears as a refusal that it understands.
    assert told["status"] == 400, told
    assert "cannot do tools" in told["words"]


@pytest.mark.parametrize(
    ("act", "handler"),
    [("chat", "chat_completions"), ("stream", "chat_completions"), ("embed", "embeddings")],
)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_exhausted_budget_is_asked_about_once(
    live: Live, python: Path, models: Any, poor: str, client: str, act: str, handler: str
) -> None:
    before, sent = requests_of(live, handler), attempts(live)
    told = run(python, live, models, client=client, act=act, key=poor)
    # LangChain has a name of its own for the official client's error.
    assert (told["error"].removeprefix("OpenAI"), told["status"]) == ("RateLimitError", 429), told
    assert requests_of(live, handler) - before == 1
    assert attempts(live) == sent

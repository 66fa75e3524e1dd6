"""What a bench of the whole stands on: services of its own, a stand-in for the inference server, one web process.

Everything is started for the bench and pinned: the web process has core 0 to itself, all else core 1.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[1]
UPSTREAM_PORT = int(os.environ.get("BENCH_PORT", "9131"))
WEB_PORT = UPSTREAM_PORT + 1
TOKENS = 64


@contextlib.contextmanager
def place() -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """A data directory for one bench, and a list for the processes it starts; all of it is gone afterwards."""
    data = Path(tempfile.mkdtemp(prefix="tessera-bench-"))
    # PostgreSQL may run as another user, who must get through.
    data.chmod(0o755)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        yield data, processes
    finally:
        for process in processes:
            process.kill()
        manage({**os.environ, "TESSERA_DATA": str(data)}, "down", "--data", str(data), check=False)
        shutil.rmtree(data, ignore_errors=True)


def manage(env: dict[str, str], *words: str, check: bool = True) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=REPOSITORY,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        sys.exit(f"manage.py {words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def services(data: Path, *, core: int | None = 1) -> dict[str, str]:
    """PostgreSQL and Valkey on one core (None: on all), like all that is started later, and the environment that finds
    them."""
    env = {
        **os.environ,
        "TESSERA_DATA": str(data),
        "INFERENCE_URL": f"http://127.0.0.1:{UPSTREAM_PORT}/v1",
        "INFERENCE_KIND": "openai-compatible",
        "INFERENCE_MODEL": "bench",
        "INFERENCE_SLOTS": "5000",
        "EMBEDDING_URL": f"http://127.0.0.1:{UPSTREAM_PORT}/v1",
        "EMBEDDING_MODEL": "bench",
        "PUBLIC_URL": f"http://127.0.0.1:{WEB_PORT}",
        "LOG_LEVEL": "WARNING",
    }
    if core is not None:
        os.sched_setaffinity(0, {core % (os.cpu_count() or 1)})
    manage(env, "up", "--services-only", "--data", str(data), "--detach")
    return env


def upstream(
    tools: Path, *, gap_ms: float, ttft_ms: float = 0, port: int = UPSTREAM_PORT
) -> subprocess.Popen[bytes]:
    """The stand-in server, on core 1."""
    words = ["--port", str(port), "--tokens", str(TOKENS), "--gap-ms", str(gap_ms)]
    words += ["--ttft-ms", str(ttft_ms)]
    process = subprocess.Popen([sys.executable, str(tools / "upstream.py"), *words])
    wait_for(process, f"http://127.0.0.1:{port}/health")
    return process


def prepare(env: dict[str, str]) -> tuple[str, str]:
    """Migrate, make an account with a key and a conversation."""
    written = json.loads((Path(env["TESSERA_DATA"]) / "env.json").read_text())
    manage({**env, "DATABASE_URL": written["DATABASE_OWNER_URL"]}, "migrate")
    manage(env, "first_run", "--json")
    made = manage(env, "shell", "-v", "0", "-c", _PREPARE)
    key, conversation = made.strip().splitlines()[-1].split()
    return key, conversation


_PREPARE = """
from decimal import Decimal
from app.accounts.models import User
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create
from app.billing.services import budget_set
from app.chat.models import Conversation
user = User.objects.first()
for scope in ("installation", "team"):
    budget_set(scope=scope, unit="money", limit=Decimal(100000), period="month",
               team_id=None if scope == "installation" else user.default_team_id)
_, key = key_create(name="bench", team_id=user.default_team_id, user_id=user.id, scopes=ALL_SCOPES)
conversation = Conversation.objects.create(team_id=user.default_team_id, owner_id=user.id)
print(key, conversation.id)
"""


def web(env: dict[str, str]) -> subprocess.Popen[bytes]:
    """One web process, alone on core 0."""
    words = ["-m", "uvicorn", "app.asgi:application", "--port", str(WEB_PORT), "--log-level", "warning"]
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=REPOSITORY,
        env=env,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),  # noqa: PLW1509 - this process has one thread
    )
    wait_for(process, f"http://127.0.0.1:{WEB_PORT}/healthz")
    return process


def wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    """Until it answers; one that does not in two minutes is stopped with the bench."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).read()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    process.kill()
    sys.exit(f"{url} does not answer")


def cpu(web_pid: int, postgres_port: int) -> dict[str, float]:
    """CPU seconds so far: of the web process, and of this PostgreSQL with its backends, ended ones included."""
    spent = {"web": sum(psutil.Process(web_pid).cpu_times()[:2]), "postgres": 0.0}
    postmaster = listener(postgres_port)
    for process in (postmaster, *postmaster.children()):
        with contextlib.suppress(psutil.NoSuchProcess):
            spent["postgres"] += sum(process.cpu_times()[:2])
    # A backend that ended is in its parent's children times.
    spent["postgres"] += sum(postmaster.cpu_times()[2:4])
    return spent


def listener(port: int) -> psutil.Process:
    """The process that listens on a loopback port."""
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            return psutil.Process(connection.pid)
    sys.exit(f"nothing listens on port {port}")


def tools_of_the_load() -> Path:
    """Where `upstream.py` and `load.py` are, unless an option says otherwise."""
    return Path(os.environ.get("TESSERA_SHARED", REPOSITORY.parent / "shared")) / "bench"

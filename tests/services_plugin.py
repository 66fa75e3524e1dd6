"""Loaded by `-p tests.services_plugin`: the real services run before Django reads its settings.

The process that the tests were started in runs `manage.py up --services-only` under `.local/test`; its workers
inherit where. Several runs may share one stack: each process takes a numbered seat, which gives it a Valkey
database and a test database of its own, and the last run to leave takes the stack down.
`TESSERA_KEEP_SERVICES=1` leaves it running, which saves the start of the next run.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY / ".local" / "test"
START_SECONDS = 600
"""The first start fetches and converts the models."""
SEATS = range(1, 16)
"""Valkey has 16 databases; 0 is left to whoever looks at the stack by hand."""
PARTS = ("DATABASE_URL", "REDIS_URL", "INFERENCE_URL", "EMBEDDING_URL")

PROCESS_ENV = dict(os.environ)
"""As it was before this plugin wrote to it: for commands that start stacks of their own."""


def seat() -> int:
    """The number of this process among all that share the stack."""
    return int(os.environ["TESSERA_TEST_SEAT"])


def command(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `manage.py …` as a person's shell would, without what the tests set. All output is in `stdout`."""
    own = {k: v for k, v in PROCESS_ENV.items() if k not in {"DJANGO_SETTINGS_MODULE", "TESSERA_DATA"}}
    # Two threads each on two busy cores are a hundred times slower than one.
    own = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"} | own | (env or {})
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=REPOSITORY,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> Generator[None]:
    """A wrapper runs before pytest-django's own hook, which reads the settings."""
    if not {"-h", "--help", "-V", "--version", "--markers", "--fixtures"}.intersection(args):
        os.environ["TESSERA_DATA"] = str(DATA)
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        if not is_worker:
            _services_share(early_config)
        # A controller that hands all tests to workers runs none itself.
        if is_worker or not getattr(early_config.known_args_namespace, "numprocesses", None):
            _seat_take()
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "live: needs the whole product running beside the tests (`live_stack`)"
    )


@contextmanager
def _locked(name: str) -> Iterator[None]:
    with (DATA / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _services_share(config: pytest.Config) -> None:
    """Join the running stack or start it. The shared lock says that somebody still needs it."""
    # Tests collect no static files, and WhiteNoise warns of a directory that is not there.
    (DATA / "staticfiles").mkdir(parents=True, exist_ok=True)
    users = (DATA / "users.lock").open("w")
    with _locked("start.lock"):
        fcntl.flock(users, fcntl.LOCK_SH)
        if not _answering():
            _services_start()
    config.add_cleanup(lambda: _services_leave(users))


def _services_start() -> None:
    sys.stderr.write(f"Starting PostgreSQL, Valkey, the chat and the embedding server in {DATA}\n")
    try:
        done = command("up", "--services-only", "--data", str(DATA), "--detach")
        reason = done.stdout.strip()[-3000:]
    except subprocess.TimeoutExpired as exc:
        late = f"The test services were not ready after {START_SECONDS} s: see {DATA}/logs."
        raise pytest.UsageError(late) from exc
    if done.returncode != 0 or not _answering():
        raise pytest.UsageError(
            f"The test services did not start (exit code {done.returncode}); logs are in {DATA}/logs. "
            f"In the foreground: {sys.executable} manage.py up --services-only --data {DATA}\n{reason}"
        )
    if "TESSERA_KEEP_SERVICES" not in os.environ:
        (DATA / "started-by-tests").touch()


def _services_leave(users: IO[str]) -> None:
    """Take the stack down unless another run holds the shared lock, or somebody asked to keep it."""
    with _locked("start.lock"):
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            users.close()
        mine = DATA / "started-by-tests"
        if "TESSERA_KEEP_SERVICES" not in os.environ and mine.exists():
            command("down", "--data", str(DATA))
            mine.unlink()


def service_urls() -> dict[str, str]:
    """Where the parts are: what the environment names wins over what `up` wrote, as in the settings."""
    try:
        written = json.loads((DATA / "env.json").read_text())
    except (FileNotFoundError, ValueError):
        written = {}
    return {name: PROCESS_ENV.get(name) or written.get(name, "") for name in PARTS}


def _answering() -> bool:
    return all(_listens(url) for url in service_urls().values())


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    if not parts.hostname or not parts.port:
        return False
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=2).close()
    except OSError:
        return False
    return True


def _seat_take() -> None:
    """Claim the first free number; settings then read this process's own Valkey database."""
    for number in SEATS:
        # Never closed: the seat is free again when this process ends, however it ends.
        descriptor = os.open(DATA / f"seat-{number}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        url = urlsplit(service_urls()["REDIS_URL"])
        os.environ |= {
            "TESSERA_TEST_SEAT": str(number),
            "REDIS_URL": url._replace(path=f"/{number}").geturl(),
        }
        return
    raise pytest.UsageError(f"All {len(SEATS)} seats at the test services are taken: {DATA}/seat-*.lock.")

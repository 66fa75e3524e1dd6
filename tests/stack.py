"""A stack of real servers under one data directory, shared by whoever needs it at the same time."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[1]
START_SECONDS = 600
"""The first start fetches and converts the models."""
PARTS = ("DATABASE_URL", "REDIS_URL", "INFERENCE_URL", "EMBEDDING_URL")

PROCESS_ENV = dict(os.environ)
"""As it was before the tests wrote to it: for commands that start stacks of their own."""


class StackError(Exception):
    """The servers did not start; the message says what to look at."""


def command(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `manage.py …` as a person's shell would, without what the tests set. All output is in `stdout`."""
    own = {k: v for k, v in PROCESS_ENV.items() if k not in {"DJANGO_SETTINGS_MODULE", "TESSERA_DATA"}}
    # Two threads each on two busy cores are a hundred times slower than one.
    own = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"} | own | dict(env or {})
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


class Stack:
    """Join it before use and leave it afterwards: the first to join starts it, the last to leave takes it down."""

    def __init__(
        self, data: Path, *options: str, env: Mapping[str, str] | None = None, keep: bool = False
    ) -> None:
        """`options` are further arguments of `manage.py up`; with `keep` nobody takes down what is started now."""
        self.data = data
        self._keep = keep
        self._options = options
        self._env = env
        self._users: IO[str] | None = None

    def join(self) -> None:
        """Errors: StackError when the servers cannot be started."""
        self.data.mkdir(parents=True, exist_ok=True)
        # Tests collect no static files, and WhiteNoise warns of a directory that is not there.
        (self.data / "staticfiles").mkdir(exist_ok=True)
        self._users = (self.data / "users.lock").open("w")
        with self._alone():
            # Held until this process ends, however it ends: somebody still needs the stack.
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if not self.answers():
                self._start()

    def leave(self) -> bool:
        """Take it down unless somebody else still uses it, or it was started to be kept. Whether it went down."""
        assert self._users is not None
        with self._alone():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                self._users.close()
            if self._mark.exists() and not self._keep:
                command("down", "--data", str(self.data), env=self._env)
                self._mark.unlink()
                return True
            return False

    def urls(self) -> dict[str, str]:
        """Where the parts are: what the environment names wins over what `up` wrote, as in the settings."""
        try:
            written = json.loads((self.data / "env.json").read_text())
        except (FileNotFoundError, ValueError):
            written = {}
        return {name: PROCESS_ENV.get(name) or written.get(name, "") for name in PARTS}

    def run(self) -> dict[str, Any]:
        """What `up` wrote for scripts: url, api_key, admin_email…"""
        written: dict[str, Any] = json.loads((self.data / "run.json").read_text())
        return written

    def answers(self) -> bool:
        """Whether every part of it listens."""
        return all(_listens(url) for url in self.urls().values())

    @property
    def _mark(self) -> Path:
        """There when the tests started it, so that the tests may end it."""
        return self.data / "started-by-tests"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.data / "start.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _start(self) -> None:
        sys.stderr.write(f"Starting PostgreSQL, Valkey, the chat and the embedding server in {self.data}\n")
        arguments = ("up", *self._options, "--data", str(self.data))
        try:
            done = command(*arguments, "--detach", env=self._env)
        except subprocess.TimeoutExpired as exc:
            late = f"The test services were not ready after {START_SECONDS} s: see {self.data}/logs."
            raise StackError(late) from exc
        if done.returncode != 0 or not self.answers():
            raise StackError(
                f"The test services did not start (exit code {done.returncode}); logs are in {self.data}/logs. "
                f"In the foreground: {sys.executable} manage.py {' '.join(arguments)}\n{done.stdout.strip()[-3000:]}"
            )
        if not self._keep:
            self._mark.touch()


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    if not parts.hostname or not parts.port:
        return False
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=2).close()
    except OSError:
        return False
    return True

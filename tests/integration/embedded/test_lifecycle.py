"""Starting, dying and starting again, with the real PostgreSQL and Valkey.

The two model servers are replaced by addresses where nothing listens: that is allowed, and saves their start.
"""

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from app.embedded import postgres, system_user
from app.embedded.children import started_ticks, stat_fields
from tests.services_plugin import REPOSITORY, command

OUTSIDE = {"INFERENCE_URL": "http://127.0.0.1:9/v1", "EMBEDDING_URL": "http://127.0.0.1:9/v1"}
prove = pytest.mark.prove
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user or to mount")


class Stack:
    """One data directory and its stack."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def up(self, **env: str) -> subprocess.CompletedProcess[str]:
        return command("up", "--services-only", "--data", str(self.data), "--detach", env={**OUTSIDE, **env})

    def down(self) -> subprocess.CompletedProcess[str]:
        return command("down", "--data", str(self.data))

    def ensure_up(self) -> None:
        """Start it unless the test before left it running."""
        if not (self.data / "run.json").exists() or gone(self.supervisor):
            self.must_up()

    def must_up(self) -> None:
        done = self.up()
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-1].startswith("ready ")

    @property
    def env(self) -> dict[str, str]:
        return json.loads((self.data / "env.json").read_text())

    @property
    def supervisor(self) -> int:
        return int((self.data / "up.lock").read_text())

    @property
    def postmaster(self) -> int:
        return int((self.data / "postgres" / "postmaster.pid").read_text().split()[0])

    @property
    def sessions(self) -> list[int]:
        return json.loads((self.data / "children.json").read_text())["sessions"]

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(
            self.env["DATABASE_OWNER_URL"], autocommit=True, connect_timeout=5
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def valkey(self) -> redis.Redis:
        return redis.Redis.from_url(self.env["REDIS_URL"], socket_timeout=5)


@contextmanager
def made_and_removed() -> Iterator[Stack]:
    # Not below pytest's own folder, which only its user may enter: the database's user must.
    data = Path(tempfile.mkdtemp(prefix="tessera-life-"))
    data.chmod(0o755)
    made = Stack(data)
    try:
        yield made
    finally:
        made.down()
        shutil.rmtree(data)


@pytest.fixture
def stack() -> Iterator[Stack]:
    """A new directory, nothing started."""
    with made_and_removed() as made:
        yield made


@pytest.fixture(scope="module")
def _shared() -> Iterator[Stack]:
    with made_and_removed() as made:
        yield made


@pytest.fixture
def running(_shared: Stack) -> Stack:
    """A stack that runs and holds one row and one key; every test leaves the data as it is."""
    _shared.ensure_up()
    if not _shared.valkey.exists("kept"):
        remember(_shared)
    return _shared


def gone(pid: int) -> bool:
    fields = stat_fields(pid)
    return fields is None or fields[0] == "Z"


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def answers(ask: Callable[[], object]) -> Callable[[], bool]:
    def condition() -> bool:
        try:
            ask()
        except (psycopg.OperationalError, redis.RedisError):
            return False
        return True

    return condition


def remember(stack: Stack) -> None:
    stack.sql("CREATE TABLE IF NOT EXISTS kept (n int)")
    stack.sql("INSERT INTO kept VALUES (1)")
    stack.valkey.set("kept", "1")
    # Valkey writes its file to disk every second; a test waits for it, not for a clock.
    stack.valkey.execute_command("WAITAOF", 1, 0, 5000)


def assert_remembered(stack: Stack, rows: int = 1) -> None:
    assert len(stack.sql("SELECT n FROM kept")) == rows
    assert stack.valkey.get("kept") == b"1"


def test_a_second_up_is_refused_and_down_keeps_the_data(running: Stack) -> None:
    second = running.up()
    assert second.returncode != 0
    assert f"already runs in {running.data}" in second.stdout
    children, ports = running.sessions, (running.data / "ports.json").read_text()
    down = running.down()
    assert (down.returncode, down.stdout.strip()) == (0, "stopped")
    assert all(gone(pid) for pid in children)
    assert "nothing runs" in running.down().stdout
    running.must_up()
    assert (running.data / "ports.json").read_text() == ports
    assert_remembered(running)


def test_nothing_outlives_a_killed_supervisor_and_the_next_start_is_clean(running: Stack) -> None:
    children = running.sessions
    os.kill(running.supervisor, signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in children))
    running.must_up()
    assert_remembered(running)


@prove
def test_everything_killed_at_once(running: Stack) -> None:
    everything = [running.supervisor, *running.sessions]
    for pid in everything:
        os.kill(pid, signal.SIGSTOP)
    for pid in everything:
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in everything))
    assert (running.data / "postgres" / "postmaster.pid").exists()
    running.must_up()
    assert_remembered(running)


@prove
def test_a_postmaster_left_running_is_stopped_first(running: Stack) -> None:
    """As when the kernel's death signal is lost: the old server still holds the cluster."""
    old = running.postmaster
    os.kill(old, signal.SIGSTOP)
    os.kill(running.supervisor, signal.SIGKILL)
    until(lambda: gone(running.supervisor))
    assert not gone(old)
    (running.data / "children.json").unlink()
    os.kill(old, signal.SIGCONT)
    running.must_up()
    assert running.postmaster != old
    assert_remembered(running)


def test_a_reused_process_number_does_not_stop_the_start(running: Stack) -> None:
    running.down()
    # The database's own user now has a living process under the number that the file names.
    owner = (running.data / "postgres").stat()
    other = subprocess.Popen(
        ["/bin/sleep", "600"],
        cwd="/",
        user=owner.st_uid if os.geteuid() == 0 else None,
    )
    try:
        (running.data / "postgres" / "postmaster.pid").write_text(
            f"{other.pid}\n{running.data}/postgres\n{int(time.time())}\n5432\n\n127.0.0.1\n 1 1\nready\n"
        )
        (running.data / "up.lock").write_text(f"{other.pid}\n")
        running.must_up()
        assert other.poll() is None
        assert_remembered(running)
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("part", ["postgres", "valkey"])
def test_a_killed_part_comes_back_on_the_same_port(running: Stack, part: str) -> None:
    pid = running.postmaster if part == "postgres" else running.valkey.info("server")["process_id"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    until(answers(lambda: running.sql("SELECT 1")))
    until(answers(running.valkey.ping))
    assert_remembered(running)
    assert f"{part} ended (signal SIGKILL)" in (running.data / "logs" / "up.log").read_text()


def test_secrets_are_in_private_files_only(running: Stack) -> None:
    secrets = json.loads((running.data / "secrets.json").read_text())
    words = [value for value in secrets.values() if isinstance(value, str) and value]
    for name in ("secrets.json", "env.json", "run.json"):
        assert stat.S_IMODE((running.data / name).stat().st_mode) == 0o600
    shown = b"".join(
        Path(f"/proc/{pid}/{name}").read_bytes()
        for pid in (running.supervisor, *running.sessions)
        for name in ("cmdline", "environ")
    )
    shown += b"".join(path.read_bytes() for path in (running.data / "logs").iterdir())
    assert not [word for word in words if word.encode() in shown]
    run = json.loads((running.data / "run.json").read_text())
    names = "url admin_email admin_password api_key database_url redis_url inference_url embedding_url"
    assert list(run) == names.split()


def test_an_outside_server_replaces_a_part(stack: Stack) -> None:
    done = stack.up(REDIS_URL="redis://127.0.0.1:9/0")
    assert done.returncode == 0, done.stdout
    assert stack.env["REDIS_URL"] == "redis://127.0.0.1:9/0"
    assert len(stack.sessions) == 1
    assert not (stack.data / "valkey").exists()


@prove
def test_a_damaged_or_foreign_secrets_file_stops_the_start(running: Stack) -> None:
    running.down()
    kept = running.data / "secrets.json"
    original = kept.read_text()
    kept.unlink()
    refused = running.up()
    assert refused.returncode != 0
    assert "PostgreSQL refuses the password in secrets.json" in refused.stdout
    kept.write_text(original)
    running.must_up()
    assert_remembered(running)


def test_an_empty_database_beside_existing_documents_is_refused(stack: Stack) -> None:
    (stack.data / "originals").mkdir()
    (stack.data / "originals" / "ab12").write_text("a document")
    done = stack.up()
    assert done.returncode != 0
    assert "has been used, but its database" in done.stdout
    assert not (stack.data / "postgres").exists()


@prove
@as_root
def test_a_full_disk_is_named(stack: Stack) -> None:
    small = stack.data / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m,mode=0755", "tessera", str(small)], check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let root mount")
    try:
        done = Stack(small).up()
        assert done.returncode != 0
        assert f"The disk that holds {small} is full" in done.stdout
        assert not (small / "postgres").exists()
        # With nothing at all left, not even a small file is half written.
        (small / "fill").write_bytes(b"\0")
        subprocess.run(["dd", "if=/dev/zero", f"of={small}/fill", "bs=1M"], check=False, capture_output=True)
        before = (small / "secrets.json").read_text()
        again = Stack(small).up()
        assert again.returncode != 0
        assert "is full" in again.stdout
        assert (small / "secrets.json").read_text() == before
    finally:
        subprocess.run(["umount", str(small)], check=True)


@prove
@as_root
def test_as_root_where_the_databases_user_cannot_go_it_lives_elsewhere(stack: Stack) -> None:
    hidden = stack.data / "hidden"
    hidden.mkdir(mode=0o700)
    inner = Stack(hidden / "data")
    done = inner.up()
    try:
        assert done.returncode == 0, done.stdout
        assert "the database lives in /var/lib/tessera/" in done.stdout
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o700, "no directory was opened to others"
        assert not (inner.data / "postgres").exists()
        assert inner.sql("SELECT 1") == [(1,)]
    finally:
        inner.down()
        (place,) = {word for word in done.stdout.split() if word.startswith("/var/lib/tessera/")}
        home = Path(place.rstrip(",")).parent
        assert (home / "belongs-to").read_text().strip() == str(inner.data)
        shutil.rmtree(home)


@prove
@as_root
def test_an_ordinary_user_can_start_it(stack: Stack) -> None:
    account = pwd.getpwnam("nobody")
    os.chown(stack.data, account.pw_uid, account.pw_gid)

    def as_nobody(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd="/",
            env={"PATH": os.defpath, "PYTHONPATH": sysconfig.get_path("purelib"), **OUTSIDE},
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )

    def works(python: str) -> bool:
        try:
            return as_nobody(python, "-B", str(REPOSITORY / "manage.py"), "version").returncode == 0
        except OSError:
            return False

    # The interpreter of a virtual environment can lie in a home directory that only its owner enters.
    python = next(filter(works, (sys.executable, "/usr/bin/python3")), None)
    if python is None:
        pytest.skip("an ordinary user can run no interpreter with these packages")

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        return as_nobody(python, "-B", str(REPOSITORY / "manage.py"), *arguments, "--data", str(stack.data))

    try:
        done = manage("up", "--services-only", "--detach")
        assert done.returncode == 0, done.stderr
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in (stack.supervisor, *stack.sessions)}
        assert owners == {account.pw_uid}
        assert stack.sql("SELECT 1") == [(1,)]
    finally:
        assert manage("down").returncode == 0


def test_ctrl_c_in_the_foreground_ends_everything(stack: Stack) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--services-only", "--data", str(stack.data)],
        cwd=REPOSITORY,
        env={**os.environ, **OUTSIDE},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                break
        children = stack.sessions
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert all(started_ticks(pid) is None for pid in children)
    assert not (stack.data / "run.json").exists()


@prove
@as_root
def test_binaries_that_the_databases_user_cannot_reach_are_copied_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = stack.data / "hidden"
    shutil.copytree(postgres.binaries().parent, hidden / "pginstall", symlinks=True)
    hidden.chmod(0o700)
    monkeypatch.setattr(system_user, "HOME", stack.data / "home")
    first = system_user.place_find(stack.data, hidden / "pginstall" / "bin")
    assert first.binaries.is_relative_to(stack.data / "home")
    assert "18." in first.run((str(first.binaries / "postgres"), "--version")).stdout
    assert system_user.place_find(stack.data, hidden / "pginstall" / "bin") == first
    assert first.cluster == stack.data / "postgres"

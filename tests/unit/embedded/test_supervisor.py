"""Supervision, on small real processes."""

import gzip
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.embedded.children import Program, log_open, log_trim, started_ticks, stat_fields
from app.embedded.errors import Interrupted, PartFailed
from app.embedded.leftovers import gone, leftovers_find, leftovers_stop
from app.embedded.paths import layout_open
from app.embedded.supervisor import Supervisor, log_explain

SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(layout_open(tmp_path / "data"), environment=dict(os.environ), say=said.append)
    yield made
    made.stopping = 2
    made.stop([list(made.pids())])


def program(name: str, argv: tuple[str, ...] = SLEEP, *, ready: Callable[[], bool] = lambda: True) -> Program:
    return Program(name=name, argv=argv, ready=ready, stop_seconds=10)


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_a_killed_child_starts_again(supervisor: Supervisor, said: list[str]) -> None:
    supervisor.start(program("part"))
    first = supervisor.pids()["part"]
    os.kill(first, signal.SIGKILL)

    def is_back() -> bool:
        supervisor.tend()
        return supervisor.pids().get("part", first) != first

    until(is_back)
    assert "part ended (signal SIGKILL)" in said[0]


def test_a_child_that_dies_at_start_is_named_with_its_last_words(supervisor: Supervisor) -> None:
    argv = (sys.executable, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(3)")
    supervisor.start(program("part", argv, ready=lambda: False))
    with pytest.raises(PartFailed, match=r"part ended while starting \(exit code 3\).*the reason"):
        supervisor.wait_ready(["part"], 20)


def test_a_child_that_never_answers_is_named(supervisor: Supervisor) -> None:
    supervisor.start(program("part", ready=lambda: False))
    with pytest.raises(PartFailed, match="part did not answer"):
        supervisor.wait_ready(["part"], 0.1)


def test_a_request_to_stop_ends_the_wait(supervisor: Supervisor) -> None:
    supervisor.start(program("part", ready=lambda: False))
    supervisor.stopping = 1
    with pytest.raises(Interrupted):
        supervisor.wait_ready(["part"], 60)


def test_parts_end_in_the_order_given(supervisor: Supervisor, tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        f"    open({str(tmp_path / 'order')!r}, 'a').write(sys.argv[1] + ' '); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "open(sys.argv[2], 'w').close()\n"
        "time.sleep(600)\n"
    )
    for name in ("db", "web", "worker"):
        supervisor.start(program(name, (sys.executable, "-c", code, name, str(tmp_path / name))))
    until(lambda: all((tmp_path / name).exists() for name in ("db", "web", "worker")))
    supervisor.stop((("web",), ("worker",), ("db",)))
    assert (tmp_path / "order").read_text().split() == ["web", "worker", "db"]


def test_the_whole_process_group_of_a_child_ends(supervisor: Supervisor, tmp_path: Path) -> None:
    note = tmp_path / "grandchild"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    supervisor.start(program("part", (sys.executable, "-c", code)))
    until(lambda: note.exists() and note.read_text().isdigit())
    grandchild = int(note.read_text())
    os.kill(supervisor.pids()["part"], signal.SIGKILL)

    def is_noticed() -> bool:
        supervisor.tend()
        return "part" not in supervisor.pids()

    until(is_noticed)
    until(lambda: started_ticks(grandchild) is None or _is_zombie(grandchild))


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


def test_a_command_gives_its_output_or_its_error(supervisor: Supervisor) -> None:
    assert supervisor.run("say", (sys.executable, "-c", "print('out')")) == "out\n"
    with pytest.raises(PartFailed, match=r"fail failed \(exit code 1\).*ValueError: no"):
        supervisor.run("fail", (sys.executable, "-c", "raise ValueError('no')"))


def test_secrets_on_standard_input_are_in_no_command_line_and_no_environment(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import sys, time; open(sys.argv[1], 'w').write(sys.stdin.read()); time.sleep(600)"
    note = tmp_path / "stdin"
    argv = (sys.executable, "-c", code, str(note))
    supervisor.start(Program(name="part", argv=argv, ready=lambda: True, stdin="very secret"))
    until(lambda: note.exists() and note.read_text() == "very secret")
    process = Path(f"/proc/{supervisor.pids()['part']}")
    assert b"very secret" not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


def test_leftovers_are_known_by_session_and_directory(supervisor: Supervisor, said: list[str]) -> None:
    supervisor.start(program("part"))
    until(lambda: leftovers_find(supervisor.layout) == [supervisor.pids()["part"]])
    pid = supervisor.pids()["part"]
    leftovers_stop(supervisor.layout, said.append)
    assert leftovers_find(supervisor.layout) == []
    assert _is_zombie(pid)


def test_a_process_with_a_recorded_number_but_another_directory_is_left_alone(
    supervisor: Supervisor, tmp_path: Path, said: list[str]
) -> None:
    supervisor.start(program("part"))
    stranger = layout_open(tmp_path / "other")
    stranger.children.write_text(supervisor.layout.children.read_text())
    leftovers_stop(stranger, said.append)
    assert supervisor.pids()["part"]
    assert not _is_zombie(supervisor.pids()["part"])


def test_records_of_an_earlier_boot_count_for_nothing(supervisor: Supervisor) -> None:
    supervisor.start(program("part"))
    until(lambda: leftovers_find(supervisor.layout) != [])
    text = supervisor.layout.children.read_text()
    supervisor.layout.children.write_text(text.replace('"boot": "', '"boot": "0'))
    assert leftovers_find(supervisor.layout) == []


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("PANIC: could not write: No space left on device", "disk that holds"),
        ("OSError: [Errno 98] Address already in use", "port was taken"),
        ("one\nlast words\n\n", "last words"),
        ("", "wrote nothing"),
    ],
)
def test_known_reasons_are_put_in_words(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "part.log").write_text(log)
    assert words in log_explain(tmp_path / "part.log", tmp_path)


def test_a_long_log_is_moved_aside_while_its_program_writes_on(tmp_path: Path) -> None:
    path = tmp_path / "part.log"
    descriptor = log_open(path)
    try:
        os.write(descriptor, b"x" * (10 * 1024 * 1024 + 1))
        log_trim(path)
        os.write(descriptor, b"after")
    finally:
        os.close(descriptor)
    assert path.read_bytes() == b"after"
    (part,) = tmp_path.glob("part.log.*.gz")
    assert len(gzip.decompress(part.read_bytes())) == 10 * 1024 * 1024 + 1
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    log_trim(path)
    assert path.read_bytes() == b"after"


def test_a_log_is_cut_by_days_and_kept_for_thirty(tmp_path: Path) -> None:
    path, first = tmp_path / "part.log", datetime(2026, 3, 1, 12, tzinfo=UTC)
    for day in range(3):
        path.write_text(f"day {day}")
        log_trim(path, at=first + timedelta(days=day))
    parts = sorted(tmp_path.glob("part.log.*.gz"))
    assert [gzip.decompress(part.read_bytes()) for part in parts] == [b"day 1", b"day 2"]
    for number, part in enumerate(parts):
        written = (first + timedelta(days=number)).timestamp()
        os.utime(part, (written, written))
    log_trim(path, at=first + timedelta(days=30, hours=1))
    assert sorted(tmp_path.glob("part.log.*.gz")) == parts[1:]
    other = tmp_path / "partner.log.20200101-000000.gz"
    other.write_text("another program's")
    os.utime(other, (0, 0))
    log_trim(path, at=first + timedelta(days=32))
    assert other.exists()


def test_a_program_that_complains_without_end_fills_no_disk(tmp_path: Path) -> None:
    path, now = tmp_path / "part.log", datetime(2026, 3, 1, 12, tzinfo=UTC)
    for number in range(80):
        part = tmp_path / f"part.log.20260301-{number:06}.gz"
        part.write_bytes(b"")
        os.utime(part, (now.timestamp() - number, now.timestamp() - number))
    log_trim(path, at=now)
    left = sorted(part.name for part in tmp_path.glob("part.log.*"))
    assert left == [f"part.log.20260301-{number:06}.gz" for number in range(60)]


def test_a_log_that_cannot_be_put_aside_ends_nobody(supervisor: Supervisor, said: list[str]) -> None:
    supervisor.start(program("part"))
    log = supervisor.layout.log("part")
    log.unlink()
    log.mkdir()
    log.with_suffix(".since").write_text("2026-01-01")
    supervisor.trim()
    assert "The log of part could not be put aside: Is a directory" in said[0]
    assert not list(log.parent.glob("part.log.*"))
    assert "part" in supervisor.pids()


LEADER_ENDS = """
import ctypes, platform, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_process_whose_first_thread_is_over_is_not_gone() -> None:
    """It holds its port for as long as another thread lives."""
    child = subprocess.Popen([sys.executable, "-c", LEADER_ENDS], stdin=subprocess.PIPE)
    try:
        while (fields := stat_fields(child.pid)) is not None and fields[0] != "Z":
            pass
        assert not gone([child.pid], 0)
        child.kill()
        assert gone([child.pid], 60)
    finally:
        child.kill()
        child.communicate()

"""Keeps a set of child processes alive: starts them, waits for them, restarts the dead, ends them in order.

Everything here runs in the main thread, since the kernel's death signal follows the thread that forked.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.embedded.children import Program, collect, end, log_trim, spawn
from app.embedded.errors import Interrupted, PartFailed, known_reason, os_sentence
from app.embedded.leftovers import MARK, children_record
from app.embedded.paths import Layout

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
HURRIED_SECONDS = 20.0
TRIM_SECONDS = 60.0
STEADY_SECONDS = 60.0
"""A child that lived this long starts again at once when it dies."""
_TICK = 0.05

Say = Callable[[str], None]


@dataclass(slots=True)
class Running:
    """One supervised child."""

    program: Program
    process: subprocess.Popen[bytes]
    since: float
    pause: float = FIRST_PAUSE
    again_at: float | None = None
    """When a dead child is started again; None while it lives."""


class Supervisor:
    """The children of one data directory."""

    def __init__(self, layout: Layout, *, environment: Mapping[str, str], say: Say) -> None:
        self.layout = layout
        self.environment = {**environment, MARK: str(layout.data)}
        self.say = say
        self.stopping = 0
        """How many times somebody asked to stop; the second time nothing is waited for."""
        self._running: dict[str, Running] = {}

    def signals_take(self) -> None:
        """From now on SIGTERM, SIGINT and SIGHUP ask this supervisor to stop."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._ask())

    def _ask(self) -> None:
        self.stopping += 1

    def start(self, program: Program) -> None:
        """Start one child and watch over it from now on."""
        process = self._spawn(program)
        self._running[program.name] = Running(program=program, process=process, since=time.monotonic())
        self._record()

    def _spawn(self, program: Program) -> subprocess.Popen[bytes]:
        return spawn(program, log=self.layout.log(program.name), environment=self.environment)

    def _record(self) -> None:
        children_record(self.layout, (child.process.pid for child in self._running.values()))

    def pids(self) -> dict[str, int]:
        """Process ids by name, of living children."""
        return {name: child.process.pid for name, child in self._running.items() if child.again_at is None}

    def check_stopping(self) -> None:
        """Raises Interrupted once somebody asked to stop."""
        if self.stopping:
            raise Interrupted("Stopped before everything was up.")

    def wait_ready(self, names: Iterable[str], seconds: float) -> None:
        """Wait until each of the named children answers.

        Raises:
            PartFailed: one died, or does not answer in time; with the end of its log.
            Interrupted: somebody asked to stop.
        """
        waiting = list(names)
        deadline = time.monotonic() + seconds
        while waiting:
            self.check_stopping()
            for name in list(waiting):
                self._must_live(name)
                if self._running[name].program.ready():
                    waiting.remove(name)
            if waiting and time.monotonic() > deadline:
                raise PartFailed(
                    f"{waiting[0]} did not answer within {seconds:.0f} s. {self._log_end(waiting[0])}"
                )
            time.sleep(_TICK)

    def _must_live(self, name: str) -> None:
        code = collect(self._running[name].process)
        if code is not None:
            raise PartFailed(f"{name} ended while starting ({_ended(code)}). {self._log_end(name)}")

    def _log_end(self, name: str) -> str:
        return log_explain(self.layout.log(name), self.layout.data)

    def tend(self) -> None:
        """One look at every child: note the dead, start again those whose pause is over."""
        now = time.monotonic()
        for name, child in self._running.items():
            if child.again_at is None:
                code = collect(child.process)
                if code is not None:
                    self._note_death(name, child, code, now)
            elif now >= child.again_at:
                self._again(name, child, now)

    def _note_death(self, name: str, child: Running, code: int, now: float) -> None:
        steady = now - child.since > STEADY_SECONDS
        child.pause = FIRST_PAUSE if steady else min(child.pause * 2, LONGEST_PAUSE)
        child.again_at = now + child.pause
        self.say(
            f"{name} ended ({_ended(code)}), starting again in {child.pause:.0f} s. {self._log_end(name)}"
        )

    def _again(self, name: str, child: Running, now: float) -> None:
        child.again_at, child.since = None, now
        try:
            child.process = self._spawn(child.program)
            self._record()
        except (OSError, PartFailed) as exc:
            reason = os_sentence(exc, self.layout.data) if isinstance(exc, OSError) else str(exc)
            child.pause = min(child.pause * 2, LONGEST_PAUSE)
            child.again_at = now + child.pause
            self.say(f"{name} could not be started again: {reason}")

    def watch(self) -> None:
        """Until somebody asks to stop."""
        trimmed = time.monotonic()
        while not self.stopping:
            self.tend()
            if time.monotonic() - trimmed > TRIM_SECONDS:
                trimmed = time.monotonic()
                self.trim()
            time.sleep(_TICK * 4)

    def trim(self) -> None:
        """Put aside logs that have grown or are of yesterday. One that cannot be ends nobody: a full disk, mostly."""
        for name in self._running:
            try:
                log_trim(self.layout.log(name))
            except OSError as exc:
                self.say(f"The log of {name} could not be put aside: {os_sentence(exc, self.layout.data)}")

    def begin(
        self, name: str, argv: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> Callable[[], str]:
        """Start a command that ends by itself; the function returned waits for it, other children watched.

        Returns:
            A function that gives the command's standard output. It raises PartFailed with the end of its log
            when the command ended with an error, and Interrupted when somebody asked to stop.
        """
        program = Program(name=name, argv=tuple(argv), ready=lambda: True, environment=environment or {})
        output = self.layout.data / f".{name}.out"
        process = spawn(program, log=self.layout.log(name), environment=self.environment, output=output)

        def finish() -> str:
            try:
                self._finish(name, process)
                return output.read_text()
            finally:
                output.unlink(missing_ok=True)

        return finish

    def run(self, name: str, argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> str:
        """Run a command to its end; see `begin`."""
        return self.begin(name, argv, environment=environment)()

    def _finish(self, name: str, process: subprocess.Popen[bytes]) -> None:
        while (code := collect(process)) is None:
            if self.stopping:
                end(process)
                self.check_stopping()
            self.tend()
            time.sleep(_TICK)
        if code:
            raise PartFailed(f"{name} failed ({_ended(code)}). {self._log_end(name)}")

    def stop(self, order: Iterable[Sequence[str]]) -> None:
        """End the children group by group; a group's members stop side by side."""
        for names in order:
            group = [self._running.pop(name) for name in names if name in self._running]
            for child in group:
                if collect(child.process) is None:
                    child.process.send_signal(child.program.stop_signal)
            for child in group:
                self._await_end(child)
        self.layout.children.unlink(missing_ok=True)

    def _await_end(self, child: Running) -> None:
        deadline = time.monotonic() + child.program.stop_seconds
        hurried = False
        while collect(child.process) is None:
            # A second request is passed on: answers under way end now. The database needs its time all the same.
            if self.stopping > 1 and not hurried and child.program.stop_signal is signal.SIGTERM:
                hurried, deadline = True, min(deadline, time.monotonic() + HURRIED_SECONDS)
                child.process.send_signal(signal.SIGTERM)
            if time.monotonic() > deadline:
                self.say(f"{child.program.name} did not end in time and was killed")
                end(child.process)
                break
            time.sleep(_TICK)


def _ended(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def log_explain(log: Path, data: Path) -> str:
    """What the end of a log says, in words where the reason is a known one."""
    try:
        text = log.read_bytes()[-4000:].decode(errors="replace")
    except FileNotFoundError:
        return ""
    if known := known_reason(text, data):
        return known
    lines = [line for line in text.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "It wrote nothing"
    return f"Its log {log} ends with: {last}"

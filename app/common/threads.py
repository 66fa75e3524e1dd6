"""A few threads that an event loop hands work to.

The standard library's pool makes two futures, a condition and a wake-up of the loop for each call: 25 to 40 µs, several
times a turn. Here a call is one future of the loop, and answers that come together wake it once.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from app.common.aio import PerLoop

T = TypeVar("T")


class _Mail:
    """Answers on their way to the event loop that waits for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []

    def post(self, future: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
        """From any thread."""
        with self._lock:
            self._answers.append((future, value, error))
            is_first = len(self._answers) == 1
        if is_first:
            # Nobody waits any more on a loop that was closed.
            with suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            answers, self._answers = self._answers, []
        for future, value, error in answers:
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


class _Call(NamedTuple):
    work: Callable[[], object]
    future: asyncio.Future[Any] | None = None
    mail: _Mail | None = None

    def run(self) -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = self.work()
        except StopIteration as exc:
            # No future takes one, as no coroutine may raise one.
            error = RuntimeError("The work raised StopIteration.")
            error.__cause__ = exc
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            error = exc
        if self.future is not None and self.mail is not None:
            self.mail.post(self.future, value, error)


class Threads:
    """At most `most` of them, each started when there is work and all others are busy.

    What was handed over is done, also when the process ends meanwhile.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._queued = 0
        """Calls that no thread has taken yet."""
        self._idle = 0
        self._mail = PerLoop(_Mail)
        atexit.register(self._end)

    def call(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What `work` returns, or raises. Who is cancelled meanwhile does not hear it; it runs all the same."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Call(work, future, self._mail()))
        return future

    def aside(self, work: Callable[[], object]) -> None:
        """Run it; nobody hears what comes of it."""
        self._put(_Call(work))

    def _put(self, call: _Call) -> None:
        with self._lock:
            self._queued += 1
            if self._queued > self._idle and len(self._threads) < self._most:
                name = f"{self._name}_{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.run()
            del call

    def _next(self) -> _Call | None:
        try:
            call = self._calls.get_nowait()
        except Empty:
            with self._lock:
                self._idle += 1
            call = self._calls.get()
            with self._lock:
                self._idle -= 1
        with self._lock:
            self._queued -= 1
        return call

    def _end(self) -> None:
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

"""One function in a thread that never keeps the process from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class _Handing(Generic[T]):
    """Gives whatever is raised inside to the future instead of to the thread, which has nobody to tell."""

    def __init__(self, future: "Future[T]") -> None:
        self._future = future

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> bool:
        if raised is not None:
            self._future.set_exception(raised)
        return True


def background(work: Callable[[], T]) -> "Future[T]":
    """Start `work` now; its value or its error comes with the future."""
    future: Future[T] = Future()

    def run() -> None:
        with _Handing(future):
            future.set_result(work())

    threading.Thread(target=run, daemon=True).start()
    return future

"""One function in a thread that never keeps the process from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def background(work: Callable[[], T]) -> "Future[T]":
    """Start `work` now; its value or its error comes with the future."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException as exc:  # noqa: BLE001 - handed to whoever asks for the value
            future.set_exception(exc)
        else:
            future.set_result(value)

    threading.Thread(target=run, daemon=True).start()
    return future

"""A very short memory for reads that every request repeats."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from django.core.exceptions import SynchronousOnlyOperation

from app.common.db import in_loop, read_aside

P = ParamSpec("P")
T = TypeVar("T")

_LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    value: T
    renewed_from: float
    until: float


class Remembered(Generic[P, T]):
    """A read whose results are remembered by its arguments for some seconds in this process.

    None is older than that, counted from before it was read. In the second half of that time one caller reads it
    anew while all others still take what is known: under load nothing is read by many at once. On an event loop nobody
    waits for that: a database thread reads it.
    """

    def __init__(self, read: Callable[P, T], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._known: dict[Hashable, _Known[T]] = {}
        self._renewing: set[Hashable] = set()
        _all.add(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """What is known, or else what is read now."""
        key = (args, tuple(sorted(kwargs.items())))
        began, known = time.monotonic(), self._known.get(key)
        if known is not None and began < known.until:
            # Two may slip through between the look and the claim; that costs a read and harms nothing.
            if began < known.renewed_from or key in self._renewing:
                return known.value
            self._renewing.add(key)
            if in_loop():
                read_aside(partial(self._renewed, key, *args, **kwargs))
                return known.value
        elif in_loop():
            # Sooner than Django would: it builds the whole query first.
            raise SynchronousOnlyOperation("Read through `read_db`.")
        return self._renewed(key, *args, **kwargs)

    def _renewed(self, key: Hashable, *args: P.args, **kwargs: P.kwargs) -> T:
        began = time.monotonic()
        try:
            value = self._read(*args, **kwargs)
        finally:
            self._renewing.discard(key)
        if len(self._known) > _LARGEST:
            self._known.clear()
        self._known[key] = _Known(value, began + self._seconds / 2, began + self._seconds)
        return value

    def forget(self) -> None:
        """Read everything anew."""
        self._known.clear()


_all: WeakSet[Remembered[Any, Any]] = WeakSet()


def forget_all() -> None:
    """Read everything anew, whatever remembers it: for when the database under this process became another one."""
    for memory in list(_all):
        memory.forget()


def remembered(seconds: float) -> Callable[[Callable[P, T]], Remembered[P, T]]:
    """Remember results by arguments for `seconds`. At most a second where rights hang on it."""
    return lambda read: Remembered(read, seconds)

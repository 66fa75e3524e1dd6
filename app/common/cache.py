"""A very short memory for reads that every request repeats."""

import time
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LARGEST = 10_000


def remembered(seconds: float) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember results by arguments for `seconds` in this process. At most a second where rights hang on it."""

    def wrap(fn: Callable[P, T]) -> Callable[P, T]:
        known: dict[Hashable, tuple[float, T]] = {}

        @wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (args, tuple(sorted(kwargs.items())))
            found = known.get(key)
            if found is not None and found[0] > time.monotonic():
                return found[1]
            result = fn(*args, **kwargs)
            if len(known) > _LARGEST:
                known.clear()
            known[key] = (time.monotonic() + seconds, result)
            return result

        call.peek = lambda *args: (  # type: ignore[attr-defined]
            found[1] if (found := known.get((args, ()))) and found[0] > time.monotonic() else None
        )
        call.forget = known.clear  # type: ignore[attr-defined]
        return call

    return wrap

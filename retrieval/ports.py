"""What the web tier hands down by setting: the embedder, and the way from async code to the database."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from retrieval.types import Embedder


class RunDb(Protocol):
    """Awaits `fn(*args)` run in a thread that may use the database."""

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


@cache
def _load(path: str) -> object:
    return import_string(path)


def embedder() -> Embedder:
    """The embedder named by RETRIEVAL_EMBEDDER. Errors: ImportError when there is none of this name."""
    return cast("Embedder", _load(settings.RETRIEVAL_EMBEDDER))


def run_db() -> RunDb:
    """The door named by RETRIEVAL_RUN_DB. Errors: ImportError when there is none of this name."""
    return cast("RunDb", _load(settings.RETRIEVAL_RUN_DB))

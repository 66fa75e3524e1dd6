"""Who acts in the request that is being answered, so that a service need not be told for the log alone."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse

Actor = tuple[UUID | None, UUID | None]
"""Account and key."""

_asked: ContextVar[Callable[[], Actor] | None] = ContextVar("acting", default=None)


def acting(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: remember the request; whose it is is found out only when something is written down."""

    def middleware(request: HttpRequest) -> HttpResponse:
        bound = _asked.set(lambda: _actor_of(request))
        try:
            return get_response(request)
        finally:
            _asked.reset(bound)

    return middleware


def actor_present() -> Actor:
    """The account and the key behind the present request; two Nones in a command or a task."""
    asked = _asked.get()
    return asked() if asked is not None else (None, None)


def _actor_of(request: Any) -> Actor:
    # The API's authentication leaves what it found on Django's request: a caller, with a key or with a session.
    holder = getattr(request, "auth", None) or getattr(request, "user", None)
    return getattr(holder, "account_id", None), getattr(holder, "key_id", None)

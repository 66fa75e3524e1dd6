"""Notes when and from where a signed-in browser was last seen, for the list of devices."""

import time
from collections.abc import Callable

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.http import HttpRequest, HttpResponse

from app.common.clock import now

SEEN_SECONDS = 600
"""One write for a session, process and this long."""
_MOST = 10_000

_seen: dict[str, float] = {}


def session_seen(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: after the answer, note the session's use at most once in ten minutes."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        key = request.session.session_key
        # The API leaves None in place of a user who could not show who they are.
        if key and getattr(request.user, "is_authenticated", False) and _due(key):
            address = get_adapter().get_client_ip(request)
            UserSession.objects.filter(session_key=key).update(last_seen_at=now(), ip=address)
        return response

    return middleware


def _due(key: str) -> bool:
    moment = time.monotonic()
    if moment - _seen.get(key, -SEEN_SECONDS) < SEEN_SECONDS:
        return False
    if len(_seen) > _MOST:
        _seen.clear()
    _seen[key] = moment
    return True

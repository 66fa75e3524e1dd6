"""Who calls a stream route: what session, CSRF and host middleware do for the rest, in one reviewed place.

A bearer key is looked up at most twice a second in each process, so a revoked key is dead within a second.
A browser's session is read each time; unsafe methods with a session must carry the CSRF token.
"""

import io

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string

from app.accounts.models import User
from app.accounts.selectors import Caller, caller_by_credential, caller_by_user
from app.api.authentication import key_seen
from app.api.stream.http import Request
from app.common.addresses import address_of
from app.common.cache import remembered
from app.common.db import read_db, run_db
from app.common.errors import InvalidInput, NotAllowed, NotAuthenticated


@remembered(0.5)
def _known_key(key: str) -> Caller | None:
    caller = caller_by_credential(key)
    if caller is not None:
        key_seen(caller)
    return caller


_LONGEST_KEY = 1000
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


async def authenticate(request: Request) -> Caller:
    """The caller. Errors: NotAuthenticated, NotAllowed (CSRF), InvalidInput (host)."""
    django_request = ASGIRequest(request.scope, io.BytesIO())
    _check_host(django_request)
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if key and scheme.lower() == "bearer":
        caller = await _by_key(key.strip())
        peer = request.scope["client"][0] if request.scope["client"] else ""
        caller.require_address(address_of(peer, request.headers.get("x-forwarded-for", "")))
        return caller
    caller = await _by_session(django_request)
    if request.method not in _SAFE:
        _check_csrf(django_request)
    return caller


def _check_host(request: ASGIRequest) -> None:
    try:
        request.get_host()
    except DisallowedHost as exc:
        raise InvalidInput("This address is not one of this installation's; see PUBLIC_URL.") from exc


async def _by_key(key: str) -> Caller:
    # What is no key of ours by its length is not worth a question, nor room in memory.
    caller = await read_db(_known_key, key) if len(key) <= _LONGEST_KEY else None
    if caller is None:
        raise NotAuthenticated(
            "This API key or app session is unknown, expired or revoked. Make a new key with POST /api/v1/keys/, "
            "or refresh the session."
        )
    return caller


async def _by_session(request: ASGIRequest) -> Caller:
    cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    caller = await run_db(_session_caller, cookie) if cookie else None
    if caller is None:
        raise NotAuthenticated
    return caller


def _session_caller(session_key: str) -> Caller | None:
    """The person of a session; None when it ended or the password changed since."""
    request = HttpRequest()
    request.session = import_string(f"{settings.SESSION_ENGINE}.SessionStore")(session_key)
    user = get_user(request)
    return caller_by_user(user, session=session_key) if isinstance(user, User) and user.is_active else None


def _check_csrf(request: ASGIRequest) -> None:
    """Django's own check, on a request that never goes through its middleware."""
    # The token comes in a header; the body is not Django's to parse, whatever its content type says.
    request.POST = QueryDict()
    check = CsrfViewMiddleware(_nothing)
    check.process_request(request)
    if check.process_view(request, _nothing, (), {}) is not None:
        raise NotAllowed(
            "The page's security token is missing or old. Reload the page; your text is kept.", code="csrf"
        )


def _nothing(_: HttpRequest) -> HttpResponse:
    return HttpResponse()

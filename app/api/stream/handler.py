"""The stream tier: an ASGI application of its own, so that an open stream holds no thread and no connection.

Django's handler runs three synchronous signal receivers and a middleware stack for each request, which pins a
thread for as long as a stream is open. What that stack did is done here: host, authentication, CSRF, security
headers, request id, errors.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope
from django.db import DatabaseError

from app.accounts.selectors import Caller
from app.api.errors import error_body, openai_error_body
from app.api.stream import documents, openai_chat, openai_other, precount, turns
from app.api.stream.auth import authenticate
from app.api.stream.http import ClientGone, MethodNotAllowed, Request, Responder
from app.api.stream.sending import error_frame
from app.billing.types import Payer
from app.common.errors import AppError, NotFound
from app.common.logs import arrived_var, request_id_var, trace_var
from app.common.meters import request_counted
from app.common.models import uuid7
from app.gate import rates
from inference_client.tracing import Trace

log = logging.getLogger(__name__)

Handler = Callable[..., Awaitable[None]]

_ID = r"([0-9a-fA-F-]{32,36})"
_ROUTES: tuple[tuple[str, re.Pattern[str], Handler], ...] = tuple(
    (method, re.compile(pattern), handler)
    for method, pattern, handler in (
        ("POST", r"/v1/chat/completions/?", openai_chat.chat_completions),
        ("POST", r"/v1/embeddings/?", openai_other.embeddings),
        ("GET", r"/v1/models/?", openai_other.models_list),
        ("GET", r"/v1/models/(.+?)/?", openai_other.model_get),
        ("POST", rf"/api/v1/conversations/{_ID}/turns/?", turns.turn_post),
        ("GET", rf"/api/v1/turns/{_ID}/events/?", turns.turn_events),
        ("POST", rf"/api/v1/turns/{_ID}/stop/?", turns.turn_stop_post),
        ("POST", r"/api/v1/precount/?", precount.precount_post),
        ("GET", rf"/api/v1/documents/{_ID}/events/?", documents.document_events),
        ("GET", rf"/api/v1/collections/{_ID}/events/?", documents.collection_events),
    )
)


def route(scope: HTTPScope) -> tuple[Handler, tuple[str, ...]] | None:
    """The handler of a stream route and the ids in its path; None for everything that is Django's.

    All of `/v1` is ours, and so is every method on our paths: their callers read JSON, not a page that says no.
    """
    path, method = scope["path"], scope["method"]
    if not f"{path}/".startswith(("/v1/", "/api/v1/")):
        return None
    ours = [
        (verb, handler, m.groups()) for verb, pattern, handler in _ROUTES if (m := pattern.fullmatch(path))
    ]
    for verb, handler, ids in ours:
        if verb == method:
            return handler, ids
    if ours:
        return _other_method, tuple(verb for verb, *_ in ours)
    return (_no_route, ()) if _in_openai_shape(path) else None


async def _other_method(request: Request, _respond: Responder, _caller: Caller, *verbs: str) -> None:
    raise MethodNotAllowed(
        f"{request.method} is not a method of this route; {', '.join(verbs)} is.",
        detail={"allowed": list(verbs)},
    )


async def _no_route(request: Request, _respond: Responder, _caller: Caller) -> None:
    raise NotFound(
        f"There is no route {request.path}. Under /v1 there are chat/completions, embeddings and models; "
        "Tessera's own routes are under /api/v1/."
    )


def _in_openai_shape(path: str) -> bool:
    return f"{path}/".startswith("/v1/")


async def handle(
    scope: HTTPScope,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
    found: tuple[Handler, tuple[str, ...]],
) -> None:
    """Serve one stream request. Every error becomes JSON in the caller's dialect."""
    identity = uuid7()
    request_id = str(identity)
    request_id_var.set(request_id)
    arrived_var.set(began := time.perf_counter())
    request, respond = Request(scope, receive, request_id), Responder(send, request_id)
    trace_var.set(Trace.read(request.headers, otherwise=identity.hex))
    handler, ids = found
    try:
        await _serve(request, respond, handler, ids)
    finally:
        # 499, as nginx has it: the caller left before there was an answer.
        request_counted(handler.__name__.strip("_"), respond.status or 499, time.perf_counter() - began)


async def _serve(request: Request, respond: Responder, handler: Handler, ids: tuple[str, ...]) -> None:
    caller: Caller | None = None
    in_openai_shape = _in_openai_shape(request.path)
    try:
        caller = await authenticate(request)
        if in_openai_shape and request.method == "GET":
            respond.extra = await _rate_headers(caller)
        await handler(request, respond, caller, *ids)
    except ClientGone:
        return
    except Exception as exc:
        if respond.started and not respond.streaming:
            raise
        if in_openai_shape and caller is not None and not respond.extra and not respond.started:
            respond.extra = await _rate_headers(caller)
        shape: Callable[..., tuple[int, dict[str, Any], dict[str, str]]]
        shape = openai_error_body if in_openai_shape else error_body
        status, body, headers = shape(exc, request.id)
        headers.pop("x-request-id", None)
        log.info("%s %s was refused: %s.", request.method, request.path, status)
        if respond.streaming:
            # Never a stream that just breaks off: a reader could not tell it from a broken line.
            await respond.write(_last_words(body, in_openai_shape=in_openai_shape))
            await respond.end()
            return
        await respond.json(status, body, headers)


def _last_words(body: dict[str, Any], *, in_openai_shape: bool) -> bytes:
    """The end of a stream that something broke in the middle, in the dialect it began in."""
    return openai_chat.error_end(body) if in_openai_shape else error_frame(body["error"])


async def _rate_headers(caller: Caller) -> dict[str, str]:
    """How the caller's rate limits stand. Nothing where that cannot be found out: the answer matters more."""
    payer = Payer(team_id=caller.default_team_id, account_id=caller.account_id, key_id=caller.key_id)
    try:
        return rates.headers(await rates.peek(payer))
    except (AppError, DatabaseError):
        return {}

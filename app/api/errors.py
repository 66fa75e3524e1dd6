"""Every refusal as JSON, in one place, for the REST tier, the stream handler and the OpenAI shape.

    {"error": {"code", "message", "detail", "request_id", "retryable"}}

Codes come from the closed list in `app.api.error_codes`; clients branch on codes, people read messages.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import kombu.exceptions
import redis.exceptions
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as drf
from rest_framework.response import Response

from app.chat import showing
from app.common.clock import now
from app.common.errors import AppError
from app.common.logs import request_id_var
from inference_client import errors as inference
from retrieval.errors import RetrievalError

log = logging.getLogger(__name__)

# The lower tiers have their own words for what the API calls by one name.
_RETRIEVAL_CODES = {
    "forbidden": "not_allowed",
    "validation_failed": "invalid",
    "address_refused": "invalid",
    "embedding_unavailable": "embedder_unavailable",
    "retrieval_failed": "internal",
}
_DRF_CODES: Mapping[type[drf.APIException], str] = {
    drf.ParseError: "malformed",
    drf.NotAuthenticated: "not_authenticated",
    drf.AuthenticationFailed: "not_authenticated",
    drf.PermissionDenied: "not_allowed",
    drf.NotFound: "not_found",
    drf.MethodNotAllowed: "method_not_allowed",
    drf.NotAcceptable: "not_acceptable",
    drf.UnsupportedMediaType: "unsupported_media_type",
    drf.Throttled: "rate_limited",
}
# status, type and code where OpenAI's own differ from what the status alone says.
_OPENAI: Mapping[str, tuple[int, str, str]] = {
    "not_authenticated": (401, "invalid_request_error", "invalid_api_key"),
    "budget_exhausted": (429, "insufficient_quota", "insufficient_quota"),
    "rate_limited": (429, "rate_limit_exceeded", "rate_limit_exceeded"),
    # Neither is a quota that waiting or paying would fill.
    "price_missing": (400, "invalid_request_error", "price_missing"),
    "paused": (403, "permission_error", "paused"),
}
_OPENAI_PARAMS = {"model_not_found": "model", "price_missing": "model", "context_length_exceeded": "messages"}
_BROKER = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, kombu.exceptions.OperationalError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error as callers see it, before it takes a wire shape."""

    status: int
    code: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    retryable: bool = False
    retry_after: float | None = None
    """Seconds."""


def refusal_of(exc: BaseException) -> Refusal:
    """What to tell the caller about any error. What is nobody's doing but ours is logged and becomes `internal`."""
    known = _known(exc)
    if known is not None:
        return known
    log.error("A request failed by a mistake of ours.", exc_info=exc)
    return Refusal(
        status=500,
        code="internal",
        message="Tessera made a mistake while answering. Your input was not lost by it; "
        "an administrator finds the reason in the log by the request id.",
    )


def _known(exc: BaseException) -> Refusal | None:  # noqa: PLR0911 - one for each family of errors
    match exc:
        case AppError():
            return Refusal(
                status=exc.status,
                code=exc.name,
                message=exc.message,
                detail=exc.detail,
                retryable=exc.retryable,
                retry_after=exc.retry_after if exc.retry_after is not None else _until_reset(exc.detail),
            )
        case RetrievalError():
            return _of_retrieval(exc)
        case inference.InferenceError():
            return _of_inference(exc)
        case drf.APIException() | Http404() | PermissionDenied() | RequestDataTooBig():
            return _of_framework(exc)
        case OperationalError() | InterfaceError():
            return _part("database", "database_unavailable", "The database does not answer")
        case _ if isinstance(exc, _BROKER):
            return _part("broker", "broker_unavailable", "The broker (Valkey) does not answer")
        case _:
            return None


def part_away(exc: BaseException) -> str | None:
    """`database` or `broker` when the error is that it does not answer."""
    match _known(exc):
        case Refusal(code="database_unavailable" | "broker_unavailable", detail=detail):
            return str(detail["part"])
        case _:
            return None


def _part(part: str, code: str, words: str) -> Refusal:
    message = f"{words}. Nothing was lost; try again in a moment."
    return Refusal(
        status=503, code=code, message=message, detail={"part": part}, retryable=True, retry_after=5
    )


def _of_retrieval(exc: RetrievalError) -> Refusal:
    code = _RETRIEVAL_CODES.get(exc.code, exc.code)
    detail = {"part": "embedder", **exc.detail} if code == "embedder_unavailable" else exc.detail
    return Refusal(
        status=exc.status,
        code=code,
        message=exc.message,
        detail=detail,
        retryable=exc.retryable,
        retry_after=5 if exc.status == 503 else None,
    )


def _of_inference(exc: inference.InferenceError) -> Refusal:
    told = showing.failure(exc)
    return Refusal(
        status=told.status,
        code=told.code,
        message=told.message,
        detail=told.detail,
        retryable=told.retryable,
        retry_after=told.retry_after,
    )


def _of_framework(exc: Exception) -> Refusal:
    match exc:
        case drf.ValidationError():
            fields = exc.get_full_details()
            return Refusal(
                status=422,
                code="invalid",
                message=_first_sentence(exc.detail),
                detail={"fields": _plain(fields)},
            )
        case drf.PermissionDenied() if str(exc.detail).startswith("CSRF"):
            message = "The CSRF token is missing or old. Reload the page and send it as X-CSRFToken."
            return Refusal(status=403, code="csrf", message=message)
        case drf.APIException():
            code = next((code for kind, code in _DRF_CODES.items() if isinstance(exc, kind)), "invalid")
            wait = getattr(exc, "wait", None)
            return Refusal(
                status=exc.status_code,
                code=code,
                message=str(exc.detail),
                retryable=isinstance(exc, drf.Throttled),
                retry_after=wait,
            )
        case PermissionDenied():
            return Refusal(status=403, code="not_allowed", message="Your role does not allow this.")
        case RequestDataTooBig():
            return Refusal(
                status=413, code="too_large", message="The body is larger than this route accepts."
            )
    return Refusal(status=404, code="not_found", message="There is no such thing, or you may not read it.")


def _first_sentence(detail: Any, path: str = "") -> str:
    """The first complaint with the name of its field, as one sentence."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        return _first_sentence(inner, path if name == "non_field_errors" else f"{path}.{name}".lstrip("."))
    if isinstance(detail, list):
        return _first_sentence(detail[0], path)
    return f"{path}: {detail}" if path else str(detail)


def _plain(details: Any) -> Any:
    if isinstance(details, dict):
        return {str(k): str(v) if k in {"message", "code"} else _plain(v) for k, v in details.items()}
    return [_plain(item) for item in details] if isinstance(details, list) else str(details)


def _until_reset(detail: Mapping[str, Any]) -> float | None:
    resets_at = detail.get("resets_at")
    if not isinstance(resets_at, str):
        return None
    return max(1.0, (datetime.fromisoformat(resets_at) - now()).total_seconds())


def error_body(exc: BaseException, request_id: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """(status, body, headers) of an error in Tessera's own shape."""
    refusal = refusal_of(exc)
    body = {
        "code": refusal.code,
        "message": refusal.message,
        "detail": dict(refusal.detail),
        "request_id": request_id or None,
        "retryable": refusal.retryable,
    }
    return refusal.status, {"error": body}, _retry_headers(refusal)


def _retry_headers(refusal: Refusal) -> dict[str, str]:
    return {} if refusal.retry_after is None else {"Retry-After": str(max(1, math.ceil(refusal.retry_after)))}


def openai_error_body(exc: BaseException, request_id: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """(status, body, headers) of an error as OpenAI's clients read it.

    Their clients retry a 429 by themselves, so an exhausted budget also says `x-should-retry: false`.
    """
    refusal = refusal_of(exc)
    status, kind, code = _OPENAI.get(refusal.code) or _openai_by_status(refusal)
    detail = dict(refusal.detail)
    body = {
        "message": refusal.message,
        "type": kind,
        "param": _OPENAI_PARAMS.get(refusal.code, detail.get("field")),
        "code": code,
        "detail": detail,
    }
    headers = _retry_headers(refusal) | ({"x-request-id": request_id} if request_id else {})
    if refusal.code == "rate_limited" and refusal.retry_after is not None:
        headers["retry-after-ms"] = str(math.ceil(refusal.retry_after * 1000))
    elif not refusal.retryable:
        headers["x-should-retry"] = "false"
    return status, {"error": body}, headers


def _openai_by_status(refusal: Refusal) -> tuple[int, str, str]:
    if refusal.status >= 500:
        return refusal.status, "server_error", refusal.code
    kinds = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error"}
    # They know neither 402 nor 422: the one is a quota, the other a bad request.
    status = {402: 429, 422: 400}.get(refusal.status, refusal.status)
    return status, kinds.get(refusal.status, "invalid_request_error"), refusal.code


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's door: every exception of a view ends here."""
    status, body, headers = error_body(exc, request_id_var.get())
    response = Response(body, status=status, headers=headers)
    if scheme := getattr(exc, "auth_header", None):
        response["WWW-Authenticate"] = scheme
    elif status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="tessera"'
    return response

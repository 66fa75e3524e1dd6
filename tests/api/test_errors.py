"""One shape for every refusal, and the closed list of codes."""

import datetime
import importlib
import pkgutil
from decimal import Decimal

import kombu.exceptions
import pytest
import redis.exceptions
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions as drf

import app.billing
import app.chat
import retrieval
from app.api.error_codes import CODES
from app.api.errors import error_body, openai_error_body, refusal_of
from app.billing.errors import BudgetExhausted, PriceMissing, SpendingPaused
from app.billing.naming import Covers
from app.billing.types import LimitState
from app.chat.precount import ContextTooLong
from app.common import errors
from app.common.clock import now
from inference_client import errors as inference
from retrieval import errors as retrieval_errors

COVERS = Covers("of team “Research”", "An owner of the team")


def _limit():
    return LimitState(
        scope="team",
        unit="money",
        limit=Decimal(50),
        remaining=Decimal("0.25"),
        resets_at=now() + datetime.timedelta(hours=1),
        hard=True,
        name="Research",
    )


EXHAUSTED = BudgetExhausted(_limit(), currency="EUR", covers=COVERS)


@pytest.mark.parametrize(
    ("exc", "status", "code", "part"),
    [
        (errors.NotFound(), 404, "not_found", None),
        (errors.Restarting(retry_after=5), 503, "restarting", None),
        (
            errors.PartFailed("embedder", "Away.", code="embedder_unavailable"),
            503,
            "embedder_unavailable",
            "embedder",
        ),
        (retrieval_errors.NotFound("collection", "x"), 404, "not_found", None),
        (retrieval_errors.Forbidden(), 403, "not_allowed", None),
        (retrieval_errors.Invalid("name", "Empty."), 422, "invalid", None),
        (retrieval_errors.TooLarge(limit=1000), 413, "too_large", None),
        (retrieval_errors.EmbeddingUnavailable(), 503, "embedder_unavailable", "embedder"),
        (retrieval_errors.ReadError("Locked.", reason="encrypted"), 422, "unreadable", None),
        (inference.Unreachable(), 503, "chat_server_failed", "chat server"),
        (
            inference.ContextTooLong(input_tokens=9000, context_window=4096),
            422,
            "context_length_exceeded",
            None,
        ),
        (drf.ParseError("Bad JSON"), 400, "malformed", None),
        (drf.MethodNotAllowed("PATCH"), 405, "method_not_allowed", None),
        (drf.UnsupportedMediaType("text/csv"), 415, "unsupported_media_type", None),
        (Http404(), 404, "not_found", None),
        (OperationalError("connection refused"), 503, "database_unavailable", "database"),
        (redis.exceptions.ConnectionError(), 503, "broker_unavailable", "broker"),
        (kombu.exceptions.OperationalError(), 503, "broker_unavailable", "broker"),
        (ZeroDivisionError(), 500, "internal", None),
    ],
)
def test_every_error_has_one_shape(exc, status, code, part):
    got, body, headers = error_body(exc, "request-1")
    assert (got, body["error"]["code"]) == (status, code)
    assert set(body["error"]) == {"code", "message", "detail", "request_id", "retryable"}
    assert body["error"]["detail"].get("part") == part
    assert body["error"]["request_id"] == "request-1"
    assert len(body["error"]["message"]) > 3
    assert ("Retry-After" in headers) == (status == 503 and code != "chat_server_failed")


def test_a_mistake_of_ours_tells_nothing_of_itself():
    _, body, _ = error_body(ValueError("the secret question"), "request-1")
    assert "secret" not in str(body)


def test_an_exhausted_budget_says_what_when_and_how_much():
    status, body, headers = error_body(EXHAUSTED, "")
    assert status == 402
    assert body["error"]["code"] == "budget_exhausted"
    assert {"scope", "limit", "remaining", "resets_at", "unit", "needed", "limit_id", "raised_by"} <= set(
        body["error"]["detail"]
    )
    assert 3500 < int(headers["Retry-After"]) <= 3600


@pytest.mark.parametrize(
    ("exc", "status", "kind", "code", "retry"),
    [
        (errors.NotAuthenticated(), 401, "invalid_request_error", "invalid_api_key", "false"),
        (EXHAUSTED, 429, "insufficient_quota", "insufficient_quota", "false"),
        (PriceMissing("m"), 400, "invalid_request_error", "price_missing", "false"),
        (SpendingPaused("invoice check"), 403, "permission_error", "paused", "false"),
        (errors.RateLimited(retry_after=1.5), 429, "rate_limit_exceeded", "rate_limit_exceeded", None),
        (
            errors.NotFound("No.", code="model_not_found"),
            404,
            "invalid_request_error",
            "model_not_found",
            "false",
        ),
        (ContextTooLong("9000 of 4096"), 400, "invalid_request_error", "context_length_exceeded", "false"),
        (errors.InvalidInput("Wrong."), 400, "invalid_request_error", "invalid", "false"),
        (errors.NotAllowed(), 403, "permission_error", "not_allowed", "false"),
        (errors.Busy(retry_after=2), 503, "server_error", "busy", None),
    ],
)
def test_openai_clients_read_their_own_shape(exc, status, kind, code, retry):
    got, body, headers = openai_error_body(exc, "request-1")
    assert (got, body["error"]["type"], body["error"]["code"]) == (status, kind, code)
    assert {"message", "type", "param", "code"} <= set(body["error"])
    assert headers.get("x-should-retry") == retry
    assert headers["x-request-id"] == "request-1"


def test_a_rate_limit_tells_the_wait_twice():
    _, _, headers = openai_error_body(errors.RateLimited(retry_after=1.5), "")
    assert headers["retry-after-ms"] == "1500"
    assert headers["Retry-After"] == "2"


def test_a_field_that_is_wrong_is_named_with_its_path():
    refusal = refusal_of(drf.ValidationError({"budget": {"limit": ["Not a number."]}}))
    assert refusal.message == "budget.limit: Not a number."
    assert "limit" in refusal.detail["fields"]["budget"]


def _subclasses(kind):
    return {kind, *(below for direct in kind.__subclasses__() for below in _subclasses(direct))}


def test_the_list_of_codes_is_closed():
    for package in (app.billing, app.chat, retrieval):
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in {"admin", "migrations", "management"}:
                importlib.import_module(f"{package.__name__}.{module.name}")
    known = {kind.code for kind in _subclasses(errors.AppError) - {errors.AppError}}
    assert known - set(CODES) == set()

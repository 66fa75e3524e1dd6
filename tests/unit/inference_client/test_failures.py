"""What a server's error means."""

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.adapters.failures import failure, from_value
from inference_client.adapters.retry_after import MAX_WAIT_S, retry_after

NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)
E = errors


def _error(**fields: Any) -> dict[str, Any]:
    return {"error": fields}


CASES: list[tuple[str, int, Any, type[errors.InferenceError]]] = [
    ("openai throttle", 429, _error(code="rate_limit_exceeded"), E.Throttled),
    (
        "openai money",
        429,
        _error(type="insufficient_quota", code="insufficient_quota"),
        E.UpstreamMoneyExhausted,
    ),
    ("openai context", 400, _error(code="context_length_exceeded"), E.ContextTooLong),
    ("openai overload", 503, _error(code="server_is_overloaded"), E.Overloaded),
    ("openai model", 404, _error(code="model_not_found"), E.ModelMissing),
    ("anthropic overload", 529, {"type": "error", "error": {"type": "overloaded_error"}}, E.Overloaded),
    ("anthropic money", 402, {"type": "error", "error": {"type": "billing_error"}}, E.UpstreamMoneyExhausted),
    (
        "anthropic credit prose",
        400,
        _error(type="invalid_request_error", message="Your credit balance is too low"),
        E.UpstreamMoneyExhausted,
    ),
    (
        "anthropic context",
        400,
        _error(message="prompt is too long: 210000 tokens > 200000 maximum"),
        E.ContextTooLong,
    ),
    ("gemini daily quota or rate", 429, _error(status="RESOURCE_EXHAUSTED", code=429), E.Throttled),
    ("gemini error in a list", 503, [_error(status="UNAVAILABLE", code=503)], E.Overloaded),
    (
        "gemini key",
        400,
        _error(code=400, message="API key not valid. Please pass a valid API key."),
        E.BadAuth,
    ),
    (
        "openrouter credits",
        402,
        _error(code=402, metadata={"limit_source": "openrouter_credits"}),
        E.UpstreamMoneyExhausted,
    ),
    (
        "openrouter in flight",
        402,
        _error(code=402, metadata={"limit_source": "openrouter_in_flight_budget"}),
        E.Throttled,
    ),
    ("openrouter upstream", 502, _error(code=502, message="Provider returned error"), E.Overloaded),
    (
        "azure filter",
        400,
        _error(code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        E.ContentBlocked,
    ),
    ("azure code in digits", 429, _error(code="429", message="Rate limit is exceeded."), E.Throttled),
    (
        "vllm context",
        400,
        _error(
            message="This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
            code=400,
        ),
        E.ContextTooLong,
    ),
    ("vllm flat", 400, {"object": "error", "message": "bad temperature", "code": 40001}, E.InvalidRequest),
    ("vllm model", 404, _error(message="The model `x` does not exist."), E.ModelMissing),
    (
        "llama.cpp loading",
        503,
        _error(code=503, type="unavailable_error", message="Loading model"),
        E.Overloaded,
    ),
    (
        "llama.cpp context",
        400,
        _error(type="exceed_context_size_error", n_prompt_tokens=9031, n_ctx=4096),
        E.ContextTooLong,
    ),
    (
        "llama.cpp fork context",
        500,
        _error(message="the request exceeds the available context size"),
        E.ContextTooLong,
    ),
    (
        "tgi",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048",
            "error_type": "validation",
        },
        E.ContextTooLong,
    ),
    ("tgi overload", 429, {"error": "Model is overloaded", "error_type": "overloaded"}, E.Overloaded),
    ("ollama model", 404, {"error": "model 'x' not found"}, E.ModelMissing),
    ("triton", 400, {"error": "Request for unknown model: 'x' is not found"}, E.ModelMissing),
    ("fastapi", 401, {"detail": "Invalid API Key"}, E.BadAuth),
    ("fastapi list", 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, E.InvalidRequest),
    ("digitalocean", 401, {"id": "unauthorized", "message": "Unable to authenticate you"}, E.BadAuth),
    ("html", 502, "<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>", E.Overloaded),
    ("nothing", 500, "", E.ServerFault),
    ("teapot", 418, {}, E.InvalidRequest),
    ("list of nothing", 400, [], E.InvalidRequest),
    ("a number", 400, 7, E.InvalidRequest),
]


@pytest.mark.parametrize(
    ("status", "body", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_classes(status: int, body: Any, expected: type[errors.InferenceError]) -> None:
    data = body.encode() if isinstance(body, str) else orjson.dumps(body)
    got = failure(status, {}, data, now=NOW)
    assert type(got) is expected
    assert got.status == status
    assert got.message.endswith(".")


def test_bedrock_names_its_error_in_a_header() -> None:
    headers = {"x-amzn-errortype": "ServiceQuotaExceededException:http://internal.amazon.com/"}
    assert type(failure(400, headers, b'{"message":"too many"}')) is errors.UpstreamMoneyExhausted


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            _error(
                message="This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
            ),
            (5000, 4096),
        ),
        (_error(message="prompt is too long: 210000 tokens > 200000 maximum"), (210000, 200000)),
        (
            _error(
                message="request (9031 tokens) exceeds the available context size (4096 tokens), try increasing it"
            ),
            (9031, 4096),
        ),
        (_error(type="exceed_context_size_error", n_prompt_tokens=9031, n_ctx=4096), (9031, 4096)),
        (_error(code="context_length_exceeded", message="Too long."), (None, None)),
    ],
)
def test_the_two_numbers_of_a_prompt_that_is_too_long(
    error: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    got = failure(400, {}, orjson.dumps(error))
    assert isinstance(got, errors.ContextTooLong)
    assert (got.input_tokens, got.context_window) == expected
    assert (str(expected[0]) in got.message) is (expected[0] is not None)


def test_an_error_inside_a_stream_takes_its_status_from_the_body() -> None:
    assert type(from_value(_error(code=503, message="busy"))) is errors.Overloaded
    assert from_value(_error(status_code=400, code="tool_use_failed")).status == 400


def test_keys_never_leave_through_an_error() -> None:
    said = "Incorrect API key provided: sk-abcdef1234567890. Bearer eyJhbGciOi"
    got = failure(401, {}, orjson.dumps(_error(message=said)))
    assert got.upstream is not None
    assert "abcdef" not in got.upstream
    assert "eyJ" not in got.upstream
    assert "sk-" not in got.message


def test_what_is_kept_is_short() -> None:
    got = failure(400, {}, orjson.dumps(_error(message="x" * 10_000)))
    assert got.upstream is not None
    assert len(got.upstream) == 500


DETAILS = _error(status="RESOURCE_EXHAUSTED", details=[{"@type": "Help"}, {"retryDelay": "12.5s"}])
WAITS: list[tuple[dict[str, str], Any, float | None]] = [
    ({}, {}, None),
    ({"retry-after": "7"}, {}, 7),
    ({"retry-after": "1.5"}, {}, 1.5),
    ({"retry-after-ms": "250", "retry-after": "9"}, {}, 0.25),
    ({"retry-after-ms": "soon", "retry-after": "9"}, {}, 9),
    ({"retry-after": format_datetime(datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC), usegmt=True)}, {}, 30),
    ({"retry-after": format_datetime(datetime(2026, 7, 1, 11, 0, 0, tzinfo=UTC), usegmt=True)}, {}, 0),
    ({"retry-after": "whenever"}, {}, None),
    ({"retry-after": "¹"}, {}, None),
    ({"retry-after": "99999999"}, {}, MAX_WAIT_S),
    ({}, DETAILS, 12.5),
    ({"x-ratelimit-reset-requests": "1m2s"}, {}, 62),
    ({"x-ratelimit-reset-tokens": "6ms"}, {}, 0.006),
    ({"ratelimit-reset": str(int(NOW.timestamp()) + 40)}, {}, 40),
    ({"x-ratelimit-reset": str((int(NOW.timestamp()) + 40) * 1000)}, {}, 40),
    ({"anthropic-ratelimit-requests-reset": "2026-07-01T12:00:05Z"}, {}, 5),
    ({"anthropic-ratelimit-requests-reset": "2026-07-01T12:00:05"}, {}, 5),
]


@pytest.mark.parametrize(("headers", "body", "expected"), WAITS)
def test_how_long_to_wait(headers: dict[str, str], body: Any, expected: float | None) -> None:
    got = retry_after(headers, body, NOW)
    assert got == (pytest.approx(expected) if expected is not None else None)


def test_the_wait_is_on_errors_that_may_be_tried_again() -> None:
    assert failure(429, {"retry-after": "7"}, b"{}").retry_after == 7
    assert failure(400, {"retry-after": "7"}, b"{}").retry_after is None


@pytest.mark.parametrize(
    ("error", "retryable", "never_sent"),
    [
        (errors.Unreachable(), True, True),
        (errors.Throttled(), True, False),
        (errors.Overloaded(), True, False),
        (errors.ServerFault(), True, False),
        (errors.UpstreamMoneyExhausted(), False, False),
        (errors.BrokenStream(), False, False),
        (errors.TimedOut("idle", 3), False, False),
        (errors.Unsupported(), False, True),
    ],
)
def test_what_may_be_tried_again(error: errors.InferenceError, retryable: bool, never_sent: bool) -> None:
    info = error.info
    assert (info.retryable, info.never_sent, info.name) == (retryable, never_sent, type(error).__name__)
    assert len(info.message.split(". ")) >= 2, "says what happened and what to do"

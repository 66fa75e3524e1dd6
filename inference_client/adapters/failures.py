"""What a server's error means: status, headers and body in, a class of `errors.py` out. No IO.

The body is believed before the status, because servers answer one and the same thing under several.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from inference_client import errors
from inference_client.adapters.json_tools import items, obj, text_of
from inference_client.adapters.retry_after import retry_after
from inference_client.errors import InferenceError

MAX_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A server's error, taken apart."""

    status: int
    """HTTP status, or the number in the body where that came under a 200."""
    message: str = ""
    words: frozenset[str] = frozenset()
    """Codes and types in lower case."""
    code: str | None = None
    input_tokens: int | None = None
    context_window: int | None = None
    body: object = None


_MONEY = {
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "insufficient_credits",
    "insufficient_balance",
    "openrouter_credits",
    "openrouter_key_limit",
    "servicequotaexceededexception",
    "spend_limit_exceeded",
}
_CONTEXT = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "too_many_prompt_tokens",
    "string_above_max_length",
}
_CONTENT = {
    "content_filter",
    "responsibleaipolicyviolation",
    "content_policy_violation",
    "moderation_blocked",
}
_MODEL = {"model_not_found", "deploymentnotfound", "model_not_available", "unknown_model", "invalid_model"}
_AUTH = {
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "accessdeniedexception",
    "unrecognizedclientexception",
}
_THROTTLE = {
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "resource_exhausted",
    "throttlingexception",
    "modelnotreadyexception",
    "openrouter_in_flight_budget",
    "too_many_requests",
}
_OVERLOAD = {
    "overloaded_error",
    "server_is_overloaded",
    "unavailable_error",
    "unavailable",
    "overloaded",
    "serviceunavailableexception",
    "service_unavailable",
}
_BY_WORD: tuple[tuple[type[InferenceError], set[str]], ...] = (
    (errors.UpstreamMoneyExhausted, _MONEY),
    (errors.ContextTooLong, _CONTEXT),
    (errors.ContentBlocked, _CONTENT),
    (errors.ModelMissing, _MODEL),
    (errors.BadAuth, _AUTH),
    (errors.Throttled, _THROTTLE),
    (errors.Overloaded, _OVERLOAD),
)
_CONTEXT_PROSE = re.compile(
    r"(?i)context (?:length|window|size)|maximum context|prompt (?:is )?too long|too many input tokens"
    r"|input (?:is )?too long|exceeds the (?:maximum|available) (?:context|number of (?:input )?tokens)"
    r"|total length of all messages is too long|inputs. tokens \+ .max_new_tokens. must be"
)
_MODEL_PROSE = re.compile(
    r"(?i)model\W+\S+ (?:not found|does not exist|is not available)|no such model|unknown model"
)
_MONEY_PROSE = re.compile(
    r"(?i)credit balance|insufficient (?:balance|credits|funds)|spend(?:ing)? limit|out of credits"
)
_AUTH_PROSE = re.compile(r"(?i)api key not valid|invalid (?:api )?key|invalid authentication")
_NUMBERS = (
    re.compile(r"(\d{3,}) tokens > (\d{3,}) maximum"),
    re.compile(r"\((\d{3,}) tokens\).{0,60}?\((\d{3,}) tokens\)"),
)
_LIMIT_THEN_PROMPT = re.compile(r"(?i)context length is (\d{3,}) tokens\D{1,80}?(\d{3,})")
_BY_STATUS: Mapping[int, type[InferenceError]] = {
    401: errors.BadAuth,
    402: errors.UpstreamMoneyExhausted,
    403: errors.BadAuth,
    404: errors.ModelMissing,
    407: errors.BadAuth,
    429: errors.Throttled,
    502: errors.Overloaded,
    503: errors.Overloaded,
    529: errors.Overloaded,
}


def failure(
    status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None
) -> InferenceError:
    """The error behind a refused call; `headers` have lower-case names. Never raises."""
    text = body[:MAX_ERROR_BYTES]
    try:
        # Triton refuses a streamed request with one server-sent event.
        value: object = orjson.loads(text.removeprefix(b"data:"))
    except orjson.JSONDecodeError:
        value = text.decode("utf-8", "replace")
    return from_value(value, status=status, headers=headers, now=now)


def from_value(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None, now: datetime | None = None
) -> InferenceError:
    """The error in a JSON `value`, also one found in the middle of a stream under status 200."""
    problem = _problem(value, status, headers or {})
    chosen = _class_of(problem)
    said = problem.message or None
    if chosen is errors.ContextTooLong:
        prompt, window = _sizes(problem)
        return errors.ContextTooLong(
            upstream=said,
            code=problem.code,
            status=problem.status,
            input_tokens=prompt,
            context_window=window,
        )
    wait = retry_after(headers or {}, problem.body, now or datetime.now(UTC)) if chosen.retryable else None
    return chosen(upstream=said, code=problem.code, status=problem.status, retry_after=wait)


def _problem(value: object, status: int, headers: Mapping[str, str]) -> Problem:
    if isinstance(value, list):
        value = value[0] if value else {}
    outer = obj(value)
    inner = outer.get("error")
    error = inner if isinstance(inner, dict) else outer
    said = (
        text_of(error.get("message"))
        or text_of(error.get("detail"))
        or text_of(inner)
        or text_of(outer.get("message"))
    )
    if said is None:
        said = value if isinstance(value, str) else orjson.dumps(value)[:500].decode("utf-8", "replace")
    numeric = next((code for code in (error.get("code"), error.get("status_code")) if _is_status(code)), None)
    raw_words = [error.get(key) for key in ("code", "type", "status", "reason")]
    raw_words += [outer.get("error_type"), outer.get("code"), obj(error.get("innererror")).get("code")]
    raw_words += [
        obj(error.get("metadata")).get("limit_source"),
        headers.get("x-amzn-errortype", "").partition(":")[0],
    ]
    raw_words += [obj(detail).get("reason") for detail in items(error.get("details"))]
    words = [word for word in raw_words if text_of(word) and not str(word).isdigit()]
    return Problem(
        status=int(numeric) if numeric is not None and status < 400 else status,
        message=_prose(said),
        words=frozenset(str(word).lower() for word in words),
        code=str(words[0]) if words else (str(numeric) if numeric is not None else None),
        input_tokens=_size(error.get("n_prompt_tokens")),
        context_window=_size(error.get("n_ctx")),
        body=value,
    )


def _class_of(problem: Problem) -> type[InferenceError]:
    for chosen, words in _BY_WORD:
        if words & problem.words:
            return chosen
    if problem.status not in (401, 429) and _CONTEXT_PROSE.search(problem.message):
        return errors.ContextTooLong
    for chosen, prose in ((errors.UpstreamMoneyExhausted, _MONEY_PROSE), (errors.BadAuth, _AUTH_PROSE)):
        if prose.search(problem.message):
            return chosen
    if problem.status in (200, 400, 404, 422) and _MODEL_PROSE.search(problem.message):
        return errors.ModelMissing
    if problem.status in _BY_STATUS:
        return _BY_STATUS[problem.status]
    return errors.InvalidRequest if 400 <= problem.status < 500 else errors.ServerFault


def _sizes(problem: Problem) -> tuple[int | None, int | None]:
    """(prompt, window) from fields, else from the prose."""
    if problem.input_tokens is not None:
        return problem.input_tokens, problem.context_window
    turned = _LIMIT_THEN_PROMPT.search(problem.message)
    if turned:
        # vLLM stops counting where the window ends: "at least 1025" says nothing of a prompt's length.
        least = "at least" in turned[0].lower()
        return None if least else int(turned[2]), int(turned[1])
    found = next((match for match in (rx.search(problem.message) for rx in _NUMBERS) if match), None)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _is_status(value: object) -> bool:
    return (isinstance(value, int) and 400 <= value < 600) or (
        isinstance(value, str) and len(value) == 3 and value.isdecimal() and value[0] in "45"
    )


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _prose(text: str) -> str:
    """Text out of what may be a page of HTML."""
    if "<html" in text[:500].lower() or "<!doctype" in text[:100].lower():
        text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", text[:5000])
    return re.sub(r"\s+", " ", text).strip()

"""OpenAPI: what drf-spectacular cannot see by itself (stream routes and their events, the words on errors)."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from app.api.error_codes import CODES
from app.api.schema_streams import COMPONENTS, STREAM_PATHS


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a key is sent, for the schema."""

    target_class = "app.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key: `tsk_…`"}


_DESCRIPTION = """Chat over your own documents, every token counted.

Authenticate with `Authorization: Bearer <API key>`, or with the session of a signed-in browser and its CSRF token.
Ids are opaque strings, times are RFC 3339 in UTC, money is `{"amount": "0.00123400", "currency": "EUR"}`, and null is
unknown, which is never 0. Both slash forms of a path answer. Clients ignore fields and events they do not know.

Every error is `{"error": {code, message, detail, request_id, retryable}}` with one of these codes:

"""


_FAILED = "Tessera or a part of it failed; `retryable` says whether to try again."


def _refusal(words: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"content": content, "description": words}


def _complete(operation: dict[str, Any]) -> None:
    """Add the refusals that no view can know: those of the frame around it."""
    known = operation["responses"]
    if "default" in known:
        return
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        known.setdefault("409", _refusal("The first request with this key is still running."))
        known.setdefault("422", _refusal("A field is wrong, or the key came with another body."))
    if "requestBody" in operation:
        known.setdefault("400", _refusal("The body cannot be parsed."))
        known.setdefault("413", _refusal("The body is larger than this route takes."))
        known.setdefault("415", _refusal("Wrong type of body."))
    operation["responses"] = dict(sorted(known.items())) | {"5XX": _refusal(_FAILED)}


def describe(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A postprocessing hook: adds the stream routes, their events and the list of error codes."""
    table = "\n".join(f"| `{code}` | {words} |" for code, words in CODES.items())
    result["info"]["description"] = f"{_DESCRIPTION}| code | meaning |\n| --- | --- |\n{table}\n"
    for operation in (operation for methods in result["paths"].values() for operation in methods.values()):
        _complete(operation)
    result["components"]["schemas"] |= COMPONENTS
    result["paths"] |= STREAM_PATHS
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


SCHEMA_SETTINGS: Mapping[str, Any] = {
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "app.api.schema.describe"],
}

"""What a call came to in the end, asked of a provider that knows better later than in the stream. No IO."""

import json
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from inference_client.adapters.addresses import api_url, auth_headers
from inference_client.adapters.json_tools import obj, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.wire import WireRequest
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.servers import Server
from inference_client.types import Settled
from inference_client.usage import UsageShape, usage_read

_NATIVE = UsageShape(
    input=("native_tokens_prompt",),
    output=("native_tokens_completion",),
    cache_read=("native_tokens_cached",),
    reasoning=("native_tokens_reasoning",),
)
"""By the model's own tokenizer, which is what is billed; the other counts there are for comparison."""


def settled_request(server: Server, kind: Kind, upstream_id: str) -> WireRequest:
    """The question. Raises Unsupported where this kind keeps no such account."""
    if kind.settled_path is None:
        raise Unsupported(f"{kind.title} tells no settled cost of a call.", code="no_settlement")
    url = api_url(server, kind, kind.settled_path) + quote(upstream_id, safe="")
    return WireRequest("GET", url, {"accept": "application/json", **auth_headers(server, kind)}, b"")


def settled_read(body: bytes) -> Settled:
    """The account in `body`. Raises MalformedAnswer."""
    try:
        # As decimals: money is not to pass through a float.
        answer = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as exc:
        raise MalformedAnswer(code="not_json") from exc
    data = obj(obj(answer).get("data"))
    if not data:
        raise MalformedAnswer(code="no_account")
    return Settled(
        upstream_id=text_of(data.get("id")),
        cost=_money(data.get("total_cost")),
        upstream_cost=_money(data.get("upstream_inference_cost")),
        usage=usage_read({name: _whole(value) for name, value in data.items()}, _NATIVE),
        served_model=text_of(data.get("model")),
        provider=text_of(data.get("provider_name")),
        finish_raw=text_of(data.get("native_finish_reason")) or text_of(data.get("finish_reason")),
        cancelled=data.get("cancelled") is True,
    )


def _money(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    amount = Decimal(value)
    return amount if amount.is_finite() and amount >= 0 else None


def _whole(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value

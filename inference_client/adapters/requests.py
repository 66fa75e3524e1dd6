"""What the adapters share on the way out, and for embeddings on the way back. No IO."""

import base64
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from inference_client.adapters.base import WireRequest
from inference_client.adapters.json_tools import items, json_object, obj
from inference_client.adapters.kinds import Kind, auth_headers
from inference_client.errors import InvalidRequest, MalformedAnswer, Unsupported
from inference_client.types import (
    ChatRequest,
    Embeddings,
    ImagePart,
    Message,
    Server,
    TextPart,
    Timing,
    ToolCall,
    Usage,
)


def refuse(kind: Kind, request: ChatRequest) -> None:
    """Raise Unsupported when `request` sets a field that `kind` cannot honour; none is silently dropped."""
    refused = sorted(name for name in kind.refuses if getattr(request, name) not in (None, (), ""))
    if refused:
        raise Unsupported(
            f"{kind.title} cannot honour {', '.join(refused)}. Leave it out, or choose another model.",
            code="unsupported_option",
        )


def post(
    server: Server, kind: Kind, url: str, body: Mapping[str, Any], *, accept: str = "*/*"
) -> WireRequest:
    """A POST of `body` as JSON, with the server's key."""
    headers = {"content-type": "application/json", "accept": accept, **auth_headers(server, kind)}
    return WireRequest("POST", url, headers, orjson.dumps(body))


def bare_embeddings(rows: Sequence[object], count: int, usage: Usage, model: str | None) -> Embeddings:
    """`rows` of vectors, `count` of them, as Embeddings without timing. Raises MalformedAnswer."""
    if len(rows) != count:
        raise MalformedAnswer(code="wrong_number_of_vectors")
    vectors = [vector(row) for row in rows]
    return Embeddings(
        vectors=vectors, usage=usage, timing=Timing(started_at=datetime.now(UTC)), served_model=model
    )


def vector(value: object) -> list[float]:
    """A vector given as numbers, or as little-endian floats in base64. Raises MalformedAnswer."""
    if isinstance(value, str):
        try:
            raw = base64.b64decode(value, validate=True)
            return list(struct.unpack(f"<{len(raw) // 4}f", raw))
        except (ValueError, struct.error) as exc:
            raise MalformedAnswer(code="bad_vector") from exc
    numbers = items(value)
    if not numbers or not all(isinstance(number, int | float) for number in numbers):
        raise MalformedAnswer(code="bad_vector")
    return numbers


def plain(message: Message) -> str:
    """The text of `message`, its parts joined."""
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


def system_text(messages: Sequence[Message]) -> str | None:
    """What all system and developer messages say, for servers that take it apart from the turns."""
    texts = [plain(message) for message in messages if message.role in ("system", "developer")]
    return "\n\n".join(text for text in texts if text) or None


def parts(message: Message) -> tuple[TextPart | ImagePart, ...]:
    """The parts of `message`, without empty text."""
    content = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    return tuple(part for part in content if not isinstance(part, TextPart) or part.text)


def encoded(part: ImagePart) -> str:
    """The picture in base64."""
    return base64.b64encode(part.data).decode()


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of `call` as a value. Raises InvalidRequest where they are not a JSON object."""
    try:
        return json_object(call.arguments.encode() or b"{}")
    except MalformedAnswer:
        raise InvalidRequest(
            f"The arguments of the tool call {call.id!r} are not a JSON object, which this server needs.",
            code="tool_arguments",
        ) from None


def functions(request: ChatRequest) -> list[Mapping[str, Any]]:
    """The `function` objects of the tools of `request`."""
    return [obj(tool.get("function")) for tool in request.tools or ()]


def given(**fields: object) -> dict[str, Any]:
    """`fields` without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}

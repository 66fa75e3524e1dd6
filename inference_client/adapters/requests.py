"""What the adapters share on the way out, and for embeddings on the way back. No IO."""

import base64
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from inference_client.adapters.addresses import auth_headers
from inference_client.adapters.json_tools import items, json_object, obj
from inference_client.adapters.kind import Kind
from inference_client.adapters.sigv4 import signed
from inference_client.adapters.wire import WireRequest
from inference_client.errors import InvalidRequest, MalformedAnswer, Unsupported
from inference_client.servers import Server
from inference_client.types import (
    ChatRequest,
    Embeddings,
    ImagePart,
    Message,
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
    if kind.max_stop is not None and len(request.stop) > kind.max_stop:
        raise Unsupported(
            f"{kind.title} takes at most {kind.max_stop} stop texts, and there are {len(request.stop)}. "
            "Leave some out.",
            code="unsupported_option",
        )
    if kind.images is None and any(map(has_picture, request.messages)):
        raise Unsupported(
            f"{kind.title} takes no pictures. Leave them out, or choose another model.",
            code="unsupported_option",
        )


def post(
    server: Server, kind: Kind, url: str, body: Mapping[str, Any], *, accept: str = "*/*"
) -> WireRequest:
    """A POST of `body` as JSON, with the server's key."""
    headers = {"content-type": "application/json", "accept": accept, **auth_headers(server, kind)}
    wire = WireRequest("POST", url, headers, orjson.dumps(body))
    return signed(wire, server, kind) if kind.auth == "sigv4" else wire


def check_embed_keys(kind: Kind, body: Mapping[str, Any]) -> None:
    """Raise Unsupported when `body` of an embeddings request has fields that `kind` would refuse."""
    unknown = sorted(set(body) - kind.embed_keys) if kind.embed_keys is not None else []
    if unknown:
        raise Unsupported(
            f"{kind.title} does not know {', '.join(unknown)} for embeddings. Leave it out.",
            code="unsupported_option",
        )


def bare_embeddings(
    rows: Sequence[object], count: int | None, usage: Usage, model: str | None, *, packed_as: str = "f"
) -> Embeddings:
    """`rows` of vectors, `count` of them where that is known, as Embeddings without timing. Raises MalformedAnswer.

    `packed_as` is the struct code of the numbers inside vectors that are base64.
    """
    if len(rows) != count and (count is not None or not rows):
        raise MalformedAnswer(code="wrong_number_of_vectors")
    vectors = [vector(row, packed_as) for row in rows]
    return Embeddings(
        vectors=vectors, usage=usage, timing=Timing(started_at=datetime.now(UTC)), served_model=model
    )


def vector(value: object, packed_as: str = "f") -> list[float]:
    """A vector given as numbers, or little-endian in base64: floats, or whole numbers of -128 to 127 (`b`).

    The latter keep their size: only directions are compared, and those it does not change. Raises
    MalformedAnswer.
    """
    if isinstance(value, str):
        try:
            raw = base64.b64decode(value, validate=True)
            count = len(raw) // struct.calcsize(packed_as)
            return list(map(float, struct.unpack(f"<{count}{packed_as}", raw)))
        except (ValueError, struct.error) as exc:
            raise MalformedAnswer(code="bad_vector") from exc
    numbers = items(value)
    # Their types, without a step of Python for each: a batch has ten thousand numbers.
    if not numbers or not {int, float}.issuperset(map(type, numbers)):
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


def has_picture(message: Message) -> bool:
    """Whether `message` holds a picture."""
    return not isinstance(message.content, str) and any(
        isinstance(part, ImagePart) for part in message.content
    )


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


def message_json(message: Message) -> dict[str, Any]:
    """One message in the OpenAI shape, which others took over."""
    result: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        # An assistant message that only calls tools has null content; an empty string is refused by some.
        result["content"] = message.content if message.content or not message.tool_calls else None
    else:
        result["content"] = [_part_json(part) for part in message.content]
    if message.tool_calls:
        result["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        result["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        result["name"] = message.name
    return result


def turns(
    messages: Sequence[Message], *, content: Callable[[Message], Any], result: Callable[[Message], Any]
) -> Iterator[tuple[str, Any]]:
    """(role, content) of each turn, for servers that take the system's words apart and tools' results from the user.

    Results that follow each other go into one turn: calls made together must be answered together.
    """
    results: list[Any] = []
    for message in messages:
        if message.role == "tool":
            results.append(result(message))
            continue
        if results:
            yield "user", results
            results = []
        if message.role in {"user", "assistant"}:
            yield message.role, content(message)
    if results:
        yield "user", results


def blocks(
    message: Message,
    *,
    text: Callable[[str], Any],
    picture: Callable[[ImagePart], Any],
    call: Callable[[ToolCall], Any],
) -> list[Any]:
    """The parts and tool calls of `message`, each in a server's own form."""
    found = [text(part.text) if isinstance(part, TextPart) else picture(part) for part in parts(message)]
    return found + [call(made) for made in message.tool_calls]


def schema_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a tool's arguments; servers of a form of their own want one even where there are none."""
    return function.get("parameters") or {"type": "object", "properties": {}}


def _part_json(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{encoded(part)}"}}

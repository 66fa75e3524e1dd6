"""What a `/v1` request may carry, as data: passed on, accepted and ignored (and named), or refused."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from app.api.stream.http import typed
from app.chat.types import Options
from app.common.errors import InvalidInput
from inference_client.types import ImagePart, Message, Role, TextPart, ToolCall

USED = frozenset({
    "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p",
    "stop", "seed", "tools", "tool_choice", "response_format", "collections",
})  # fmt: skip
PASSED = frozenset(
    {"frequency_penalty", "presence_penalty", "reasoning_effort", "parallel_tool_calls", "top_k", "min_p"}
)
IGNORED = frozenset({
    "user", "store", "metadata", "service_tier", "prompt_cache_key", "safety_identifier", "prediction", "verbosity",
    "logit_bias",
})  # fmt: skip
REFUSED: Mapping[str, str] = {
    "n": "one answer a call; call again for another",
    "logprobs": "log probabilities are not passed on yet",
    "top_logprobs": "log probabilities are not passed on yet",
    "audio": "audio is not supported",
    "modalities": "only text is supported",
    "functions": "use `tools`",
    "function_call": "use `tool_choice`",
    "web_search_options": "web search is not supported",
}
_HARMLESS: Mapping[str, tuple[object, ...]] = {
    "n": (None, 1),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "functions": (None, []),
    "function_call": (None,),
    "web_search_options": (None,),
}
_TEXTS = "text or a list of texts"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_NAMED_AT_MOST = 50
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def refuse_unsupported(body: Mapping[str, Any]) -> None:
    """Errors: InvalidInput for an option that would change the answer and cannot be honoured."""
    for name, why in REFUSED.items():
        if name in body and body[name] not in _HARMLESS[name]:
            raise InvalidInput(f"`{name}` is not supported: {why}.", detail={"field": name})


def ignored(body: Mapping[str, Any]) -> list[str]:
    """Options that were accepted and have no effect: known harmless ones, and names we do not know.

    Only names that a header can carry, and no more of them than fit one.
    """
    unused = (name for name in body if name not in USED | PASSED and name not in REFUSED)
    return sorted(name for name in unused if _NAME.fullmatch(name))[:_NAMED_AT_MOST]


def messages_of(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The request's messages. Errors: InvalidInput naming the message that is wrong."""
    rows = body.get("messages")
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(
            "`messages` must be a list with at least one message.", detail={"field": "messages"}
        )
    return tuple(_message(row, f"messages[{index}]") for index, row in enumerate(rows))


def _message(row: Any, where: str) -> Message:
    if not isinstance(row, dict) or not isinstance(row.get("role"), str) or row["role"] not in _ROLES:
        raise InvalidInput(f"`{where}.role` must be one of {', '.join(_ROLES)}.", detail={"field": where})
    return Message(
        role=_ROLES[row["role"]],
        content=_content(row.get("content"), where),
        tool_calls=tuple(_tool_call(call, where) for call in typed(row, "tool_calls", list, "a list") or ()),
        tool_call_id=typed(row, "tool_call_id", str, "text"),
        name=typed(row, "name", str, "text"),
    )


def _content(value: Any, where: str) -> str | tuple[TextPart | ImagePart, ...]:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = tuple(_part(part, where) for part in value)
        if all(isinstance(part, TextPart) for part in parts):
            return "\n".join(part.text for part in parts if isinstance(part, TextPart))
        return parts
    raise InvalidInput(f"`{where}.content` must be text or a list of parts.", detail={"field": where})


def _part(part: Any, where: str) -> TextPart | ImagePart:
    match part:
        case {"type": "text" | "input_text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:image/"):
            head, _, data = url.partition(",")
            try:
                return ImagePart(base64.b64decode(data, validate=True), head[5:].split(";")[0])
            except ValueError as exc:
                raise InvalidInput(
                    f"`{where}` holds an image that is not valid base64.", detail={"field": where}
                ) from exc
    raise InvalidInput(
        f"`{where}` holds a part that is not supported; text and images as data: URLs are.",
        detail={"field": where},
    )


def _tool_call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str(identity), "function": {"name": str(name), "arguments": str(arguments)}}:
            return ToolCall(identity, name, arguments)
    raise InvalidInput(
        f"`{where}.tool_calls` must carry id, function.name and function.arguments.", detail={"field": where}
    )


def options_of(body: Mapping[str, Any]) -> Options:
    """Sampling and format options. Errors: InvalidInput naming the field."""
    stop = body.get("stop")
    tools = _all(typed(body, "tools", list, "a list of objects"), dict, "tools", "a list of objects")
    return Options(
        temperature=typed(body, "temperature", (int, float), "a number"),
        top_p=typed(body, "top_p", (int, float), "a number"),
        stop=(stop,)
        if isinstance(stop, str)
        else _all(typed(body, "stop", list, _TEXTS), str, "stop", _TEXTS),
        seed=typed(body, "seed", int, "a whole number"),
        tools=tools or None,
        tool_choice=typed(body, "tool_choice", (str, dict), "a name or an object"),
        response_format=typed(body, "response_format", dict, "an object"),
        extra={name: body[name] for name in PASSED if body.get(name) is not None},
    )


def _all(values: list[Any] | None, kind: type, field: str, words: str) -> tuple[Any, ...]:
    """`values`, each of `kind`. Errors: InvalidInput naming the field."""
    if any(not isinstance(value, kind) for value in values or ()):
        raise InvalidInput(f"`{field}` must be {words}.", detail={"field": field})
    return tuple(values or ())

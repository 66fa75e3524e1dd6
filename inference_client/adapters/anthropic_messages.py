"""Anthropic Messages, also spoken by llama.cpp, Ollama, DigitalOcean and Foundry's Claude route."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import orjson

from inference_client.adapters.base import SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind, api_url
from inference_client.adapters.requests import (
    arguments_of,
    encoded,
    functions,
    given,
    parts,
    plain,
    post,
    refuse,
    system_text,
)
from inference_client.errors import Unsupported
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    Json,
    Message,
    ReasoningDelta,
    Server,
    TextDelta,
    TextPart,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import ANTHROPIC, merged, usage_read

VERSION = "2023-06-01"


class AnthropicParser(SseParser):
    """Reads the events of a message. Usage is cumulative: input at the start, output at the end."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: dict[str, Any] | None = None
        self._calls: dict[int, int] = {}
        """Number of the content block to number of the tool call."""
        self._silent: dict[int, Json] = {}
        """Inputs given whole when their block began, until a delta shows that they come in pieces."""

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, ANTHROPIC, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        if not event.data.startswith(b"[DONE]"):
            self.on_message(json_object(event.data), out)

    def on_message(self, message: Mapping[str, Any], out: list[Event]) -> None:
        """Append what one message of the stream means to `out`."""
        kind = message.get("type")
        if kind == "content_block_delta":
            self._delta(_index(message), obj(message.get("delta")), out)
        elif kind == "content_block_start":
            self._block(_index(message), obj(message.get("content_block")), out)
        elif kind == "content_block_stop":
            self._stop(_index(message), out)
        elif kind == "message_start":
            start = obj(message.get("message"))
            self.served_model = text_of(start.get("model"))
            self.upstream_id = text_of(start.get("id"))
            self._add_usage(start.get("usage"))
        elif kind == "message_delta":
            self.finish_raw = text_of(obj(message.get("delta")).get("stop_reason")) or self.finish_raw
            self._add_usage(message.get("usage"))
        elif kind == "message_stop":
            self.ended = True
        elif kind == "error" or (kind is None and "error" in message):
            self.error = self.error or from_value(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("type") == "error" or answer.get("error"):
            self.error = from_value(answer)
            return
        for index, block in enumerate(map(obj, items(answer.get("content")))):
            self._block(index, block, out)
            self._stop(index, out)
        self.served_model = text_of(answer.get("model"))
        self.upstream_id = text_of(answer.get("id"))
        self.finish_raw = text_of(answer.get("stop_reason"))
        self._add_usage(answer.get("usage"))

    def _block(self, index: int, block: Mapping[str, Any], out: list[Event]) -> None:
        kind = block.get("type")
        if kind == "tool_use":
            number = self._calls[index] = len(self._calls)
            self._silent[index] = block.get("input")
            out.append(ToolCallDelta(number, text_of(block.get("id")), text_of(block.get("name")), ""))
        elif text := text_of(block.get("text")):
            if kind == "text":
                out.append(TextDelta(text))
        elif kind == "thinking" and (thought := text_of(block.get("thinking"))):
            out.append(ReasoningDelta(thought))

    def _delta(self, index: int, delta: Mapping[str, Any], out: list[Event]) -> None:
        if text := text_of(delta.get("text")):
            out.append(TextDelta(text))
        elif thought := text_of(delta.get("thinking")):
            out.append(ReasoningDelta(thought))
        elif index in self._calls and (piece := text_of(delta.get("partial_json"))):
            self._silent.pop(index, None)
            out.append(ToolCallDelta(self._calls[index], None, None, piece))

    def _stop(self, index: int, out: list[Event]) -> None:
        if index in self._silent:
            arguments = orjson.dumps(obj(self._silent.pop(index))).decode()
            out.append(ToolCallDelta(self._calls[index], None, None, arguments))

    def _add_usage(self, block: object) -> None:
        if isinstance(block, dict):
            self._usage = merged(self._usage, block)


class AnthropicMessages:
    """Requests in the shape of Anthropic Messages."""

    name: ClassVar[str] = "anthropic_messages"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        body: dict[str, Any] = dict(request.extra)
        body |= {"model": request.model, "max_tokens": request.max_output_tokens, "stream": True}
        body["messages"] = list(_messages(request.messages))
        body |= given(
            system=system_text(request.messages),
            temperature=request.temperature,
            top_p=request.top_p,
            stop_sequences=list(request.stop) or None,
            tools=[_tool(function) for function in functions(request)] or None,
            tool_choice=_choice(request.tool_choice),
        )
        wire = post(server, kind, api_url(server, kind, kind.chat_path), body, accept="text/event-stream")
        wire.headers.setdefault("anthropic-version", VERSION)
        return wire

    def parser(self, kind: Kind) -> AnthropicParser:
        """A fresh parser for one answer."""
        return AnthropicParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """There are no embeddings in this shape. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """There are no embeddings in this shape. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")


def _messages(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    """The turns; results of tools that follow each other go into one turn of the user, as is required."""
    results: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id or "",
                "content": plain(message),
            }
            results.append(result)
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if message.role in ("user", "assistant"):
            yield {"role": message.role, "content": _content(message)}
    if results:
        yield {"role": "user", "content": results}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str) and not message.tool_calls:
        return message.content
    blocks: list[dict[str, Any]] = []
    for part in parts(message):
        if isinstance(part, TextPart):
            blocks.append({"type": "text", "text": part.text})
        else:
            source = {"type": "base64", "media_type": part.media_type, "data": encoded(part)}
            blocks.append({"type": "image", "source": source})
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}
        for call in message.tool_calls
    ]
    return blocks + calls


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return given(name=function.get("name"), description=function.get("description"), input_schema=schema)


def _choice(choice: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return {"type": {"required": "any"}.get(choice, choice)}
    return {"type": "tool", "name": obj(choice.get("function")).get("name")}


def _index(message: Mapping[str, Any]) -> int:
    index = message.get("index")
    return index if isinstance(index, int) else 0

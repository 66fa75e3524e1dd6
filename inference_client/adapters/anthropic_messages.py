"""Anthropic Messages, also spoken by llama.cpp, Ollama, DigitalOcean and Foundry's Claude route."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import SseParser
from inference_client.adapters.counts import as_sent
from inference_client.adapters.json_tools import items, obj, text_of
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.requests import (
    arguments_of,
    blocks,
    encoded,
    functions,
    given,
    plain,
    schema_of,
    system_text,
    turns,
)
from inference_client.adapters.scripted import MODEL, Answer, typed
from inference_client.servers import Server
from inference_client.types import ChatRequest, Event, Json, Message, ReasoningDelta, TextDelta, ToolCallDelta
from inference_client.usage import UsageShape

VERSION = "2023-06-01"
SHAPE = UsageShape(
    input=("input_tokens",),
    output=("output_tokens",),
    cache_read=("cache_read_input_tokens",),
    cache_write=("cache_creation_input_tokens",),
    reasoning=("output_tokens_details.thinking_tokens",),
    input_has_cache=False,
    detail={
        "cache_write_short": ("cache_creation.ephemeral_5m_input_tokens",),
        "cache_write_long": ("cache_creation.ephemeral_1h_input_tokens",),
    },
)


class AnthropicParser(SseParser):
    """Reads the events of a message. Usage is cumulative: input at the start, output at the end."""

    shape = SHAPE

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._calls: dict[int, int] = {}
        """Number of the content block to number of the tool call."""
        self._silent: dict[int, Json] = {}
        """Inputs given whole when their block began, until a delta shows that they come in pieces."""

    def on_message(self, message: Mapping[str, Any], out: list[Event]) -> None:
        """Append what one message of the stream means to `out`; for frames that hold such messages."""
        self._on_message(message, None, out)

    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
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
            self._fail(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("type") == "error" or answer.get("error"):
            self._fail(answer)
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


_COMPATIBLE = Kind(
    name="anthropic-compatible",
    title="Server with Anthropic routes",
    aliases=("anthropic_compatible",),
    grade="supported",
    auth="x-api-key",
    chat_path="/messages",
    embed_path=None,
    refuses=frozenset({"seed", "response_format"}),
    extra_headers={"anthropic-version": VERSION},
    images="anthropic",
    counts=Counting(
        path="/v1/messages/count_tokens",
        ask=as_sent("model", "messages", "system", "tools", "tool_choice", "thinking"),
        error_pct=5.0,
    ),
)


class AnthropicMessages(Adapter):
    """Requests in the shape of Anthropic Messages."""

    name = "anthropic_messages"
    parsers = {"messages": AnthropicParser}
    kinds = (
        _COMPATIBLE,
        replace(
            _COMPATIBLE,
            name="anthropic",
            title="Anthropic",
            aliases=(),
            grade="recorded",
            leaves_premises=True,
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        body: dict[str, Any] = dict(request.extra)
        body |= {"model": request.model, "max_tokens": request.max_output_tokens, "stream": True}
        said = turns(request.messages, content=_content, result=_result)
        body["messages"] = [{"role": role, "content": content} for role, content in said]
        return body | given(
            system=system_text(request.messages),
            temperature=request.temperature,
            top_p=request.top_p,
            stop_sequences=list(request.stop) or None,
            tools=[_tool(function) for function in functions(request)] or None,
            tool_choice=_choice(request.tool_choice),
        )

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Events of a message. Without usage there is still the empty block that the format requires."""
        told = answer.usage != "none"
        fresh = 0 if answer.usage == "zero" else answer.input_tokens - answer.cache_read
        start = {"input_tokens": fresh, "cache_read_input_tokens": answer.cache_read, "output_tokens": 1}
        last = {"output_tokens": 0 if answer.usage == "zero" else answer.output_tokens}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
        yield typed({"type": "message_start", "message": {**message, "usage": start if told else {}}})
        text = {"type": "text", "text": ""}
        yield typed({"type": "content_block_start", "index": 0, "content_block": text})
        yield typed({"type": "ping"})
        for word in answer.words:
            delta = {"type": "text_delta", "text": word}
            yield typed({"type": "content_block_delta", "index": 0, "delta": delta})
        yield typed({"type": "content_block_stop", "index": 0})
        reason = {"stop_reason": "end_turn" if answer.finish == "stop" else "max_tokens"}
        yield typed({"type": "message_delta", "delta": reason, "usage": last if told else {}})
        yield typed({"type": "message_stop"})


ADAPTER = AnthropicMessages()


def _content(message: Message) -> str | list[Any]:
    if isinstance(message.content, str) and not message.tool_calls:
        return message.content
    return blocks(
        message,
        text=lambda text: {"type": "text", "text": text},
        picture=lambda part: {
            "type": "image",
            "source": {"type": "base64", "media_type": part.media_type, "data": encoded(part)},
        },
        call=lambda call: {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)},
    )


def _result(message: Message) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": plain(message)}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    return given(
        name=function.get("name"), description=function.get("description"), input_schema=schema_of(function)
    )


def _choice(choice: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return {"type": {"required": "any"}.get(choice, choice)}
    return {"type": "tool", "name": obj(choice.get("function")).get("name")}


def _index(message: Mapping[str, Any]) -> int:
    index = message.get("index")
    return index if isinstance(index, int) else 0

"""The OpenAI Responses route."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from inference_client.adapters.base import SseParser
from inference_client.adapters.counts import as_sent
from inference_client.adapters.json_tools import items, obj, text_of
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.openai_chat import SHAPE, OpenAIChat
from inference_client.adapters.openai_kinds import OPENAI_EMBED_KEYS
from inference_client.adapters.requests import encoded, functions, given, parts, plain
from inference_client.adapters.scripted import MODEL, Answer, typed
from inference_client.servers import Server
from inference_client.types import (
    ChatRequest,
    Event,
    FinishReason,
    Message,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolCallDelta,
)

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_REASONS: Mapping[str, FinishReason] = {"content_filter": "content_filter"}


class ResponsesParser(SseParser):
    """Reads typed events; the last one holds the whole response and its usage."""

    shape = SHAPE

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._response: Mapping[str, Any] = {}
        self._calls: dict[int, int] = {}
        """Number of the output item to number of the tool call."""
        self._told: set[int] = set()
        """Output items whose arguments have come in pieces."""
        self._said = False
        """Text or reasoning has come in pieces, so the whole of it at the end is no news."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """From the status, which says less than the reason beside it."""
        reason = text_of(obj(self._response.get("incomplete_details")).get("reason"))
        if self.finish_raw == "incomplete":
            return _REASONS.get(reason or "", "length")
        if self.finish_raw == "completed" and self._calls:
            return "tool_calls"
        return super().finish_reason

    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        kind = message.get("type") or name
        if kind in _TEXT and (text := text_of(message.get("delta"))):
            self._said = True
            out.append(TextDelta(text))
        elif kind in _REASONING and (thought := text_of(message.get("delta"))):
            self._said = True
            out.append(ReasoningDelta(thought))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(_index(message), obj(message.get("item")), out, done=kind.endswith("done"))
        elif kind == "response.function_call_arguments.delta":
            self._arguments(_index(message), text_of(message.get("delta")), out)
        elif kind in _LAST or kind == "response.created":
            response = obj(message.get("response"))
            if kind in _LAST and not (self._said or self._calls):
                self._output(response, out)
            self._take(response, last=kind in _LAST)
        elif kind == "error":
            self._fail(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        self._output(answer, out)
        if answer.get("error") and "status" not in answer:
            self._fail(answer)
        else:
            self._take(answer, last=True)

    def _output(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        for index, item in enumerate(map(obj, items(answer.get("output")))):
            self._item(index, item, out, done=True)
            delta = ReasoningDelta if item.get("type") == "reasoning" else TextDelta
            pieces = map(obj, [*items(item.get("summary")), *items(item.get("content"))])
            texts = (text_of(piece.get("text")) or text_of(piece.get("refusal")) for piece in pieces)
            out.extend(delta(text) for text in texts if text)

    def _take(self, response: Mapping[str, Any], *, last: bool) -> None:
        self.served_model = text_of(response.get("model")) or self.served_model
        self.upstream_id = text_of(response.get("id")) or self.upstream_id
        if last:
            self._response = response
            self._add_usage(response.get("usage"))
            self.finish_raw = text_of(response.get("status"))
            self.ended = True
            if response.get("error"):
                self._fail(response)

    def _item(self, index: int, item: Mapping[str, Any], out: list[Event], *, done: bool) -> None:
        if item.get("type") != "function_call":
            return
        if index not in self._calls:
            number = self._calls[index] = len(self._calls)
            out.append(ToolCallDelta(number, text_of(item.get("call_id")), text_of(item.get("name")), ""))
        if done and index not in self._told:
            self._arguments(index, text_of(item.get("arguments")), out)

    def _arguments(self, index: int, piece: str | None, out: list[Event]) -> None:
        if piece and index in self._calls:
            self._told.add(index)
            out.append(ToolCallDelta(self._calls[index], None, None, piece))


_COMPATIBLE = Kind(
    name="responses-compatible",
    title="Server with OpenAI's Responses route",
    grade="supported",
    chat_path="/responses",
    refuses=frozenset({"stop", "seed"}),
)


class OpenAIResponses(OpenAIChat):
    """Requests to `/responses`; embeddings are those of the OpenAI shape."""

    name = "openai_responses"
    parsers = {"responses": ResponsesParser}
    kinds = (
        _COMPATIBLE,
        replace(
            _COMPATIBLE,
            name="openai-responses",
            title="OpenAI, Responses route",
            grade="recorded",
            embed_keys=OPENAI_EMBED_KEYS,
            images="openai",
            counts=Counting(
                path="/v1/responses/input_tokens",
                ask=as_sent("model", "input", "tools", "tool_choice", "text", "reasoning"),
            ),
            leaves_premises=True,
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        body: dict[str, Any] = {
            # The answer is kept by us; a copy at the provider is asked for only on purpose.
            "store": False,
            **request.extra,
            "model": request.model,
            "input": [item for message in request.messages for item in _input(message)],
            "max_output_tokens": request.max_output_tokens,
            "stream": True,
        }
        return body | given(
            temperature=request.temperature,
            top_p=request.top_p,
            tools=[{"type": "function", **function} for function in functions(request)] or None,
            tool_choice=_choice(request.tool_choice),
            text=_text_format(request.response_format),
        )

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Typed events."""
        shell = {"id": "resp_1", "object": "response", "model": MODEL}
        yield typed(
            {"type": "response.created", "response": {**shell, "status": "in_progress", "usage": None}}
        )
        for word in answer.words:
            yield typed({"type": "response.output_text.delta", "output_index": 0, "delta": word})
        done = answer.finish == "stop"
        numbers = {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cache_read},
            "output_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
        response = {
            **shell,
            "status": "completed" if done else "incomplete",
            "incomplete_details": None if done else {"reason": "max_output_tokens"},
            "usage": None if answer.usage == "none" else numbers,
        }
        yield typed({"type": f"response.{response['status']}", "response": response})


ADAPTER = OpenAIResponses()


def _input(message: Message) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": plain(message)}
        return
    kind = "output_text" if message.role == "assistant" else "input_text"
    content = [
        {"type": kind, "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "input_image", "image_url": f"data:{part.media_type};base64,{encoded(part)}"}
        for part in parts(message)
    ]
    if content:
        yield {"role": message.role, "content": content}
    for call in message.tool_calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _choice(choice: str | Mapping[str, Any] | None) -> object:
    if choice is None or isinstance(choice, str):
        return choice
    return {"type": "function", "name": obj(choice.get("function")).get("name")}


def _text_format(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`response_format` of chat completions in the flatter form of this route."""
    if wanted is None:
        return None
    return {"format": {"type": wanted.get("type"), **obj(wanted.get("json_schema"))}}


def _index(message: Mapping[str, Any]) -> int:
    index = message.get("output_index")
    return index if isinstance(index, int) else 0

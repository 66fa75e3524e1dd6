"""The OpenAI Responses route."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from inference_client.adapters.base import SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind, api_url
from inference_client.adapters.openai_chat import OpenAIChat
from inference_client.adapters.requests import encoded, functions, given, parts, plain, post, refuse
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Event,
    FinishReason,
    Message,
    ReasoningDelta,
    Server,
    TextDelta,
    TextPart,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import OPENAI, usage_read

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_REASONS: Mapping[str, FinishReason] = {"content_filter": "content_filter"}


class ResponsesParser(SseParser):
    """Reads typed events; the last one holds the whole response and its usage."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._response: Mapping[str, Any] = {}
        self._calls: dict[int, int] = {}
        """Number of the output item to number of the tool call."""
        self._told: set[int] = set()
        """Output items whose arguments have come in pieces."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """From the status, which says less than the reason beside it."""
        reason = text_of(obj(self._response.get("incomplete_details")).get("reason"))
        if self.finish_raw == "incomplete":
            return _REASONS.get(reason or "", "length")
        if self.finish_raw == "completed" and self._calls:
            return "tool_calls"
        return super().finish_reason

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(obj(self._response.get("usage")), OPENAI, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        if event.data.startswith(b"[DONE]"):
            return
        message = json_object(event.data)
        kind = message.get("type") or event.name
        if kind in _TEXT and (text := text_of(message.get("delta"))):
            out.append(TextDelta(text))
        elif kind in _REASONING and (thought := text_of(message.get("delta"))):
            out.append(ReasoningDelta(thought))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(_index(message), obj(message.get("item")), out, done=kind.endswith("done"))
        elif kind == "response.function_call_arguments.delta":
            self._arguments(_index(message), text_of(message.get("delta")), out)
        elif kind in _LAST or kind == "response.created":
            self._take(obj(message.get("response")), last=kind in _LAST)
        elif kind == "error":
            self.error = self.error or from_value(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        for index, item in enumerate(map(obj, items(answer.get("output")))):
            self._item(index, item, out, done=True)
            delta = ReasoningDelta if item.get("type") == "reasoning" else TextDelta
            pieces = map(obj, [*items(item.get("summary")), *items(item.get("content"))])
            texts = (text_of(piece.get("text")) or text_of(piece.get("refusal")) for piece in pieces)
            out.extend(delta(text) for text in texts if text)
        if answer.get("error") and "status" not in answer:
            self.error = from_value(answer)
        else:
            self._take(answer, last=True)

    def _take(self, response: Mapping[str, Any], *, last: bool) -> None:
        self.served_model = text_of(response.get("model")) or self.served_model
        self.upstream_id = text_of(response.get("id")) or self.upstream_id
        if last:
            self._response = response
            self.finish_raw = text_of(response.get("status"))
            self.ended = True
            if response.get("error"):
                self.error = self.error or from_value(response)

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


class OpenAIResponses(OpenAIChat):
    """Requests to `/responses`; embeddings are those of the OpenAI shape."""

    name: ClassVar[str] = "openai_responses"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        body: dict[str, Any] = {
            # The answer is kept by us; a copy at the provider is asked for only on purpose.
            "store": False,
            **request.extra,
            "model": request.model,
            "input": [item for message in request.messages for item in _input(message)],
            "max_output_tokens": request.max_output_tokens,
            "stream": True,
        }
        body |= given(
            temperature=request.temperature,
            top_p=request.top_p,
            tools=[{"type": "function", **function} for function in functions(request)] or None,
            tool_choice=_choice(request.tool_choice),
            text=_text_format(request.response_format),
        )
        return post(server, kind, api_url(server, kind, kind.chat_path), body, accept="text/event-stream")

    def parser(self, kind: Kind) -> ResponsesParser:
        """A fresh parser for one answer."""
        return ResponsesParser(kind)


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

"""The OpenAI shape: chat completions, and embeddings beside it. Spoken by most servers.

What differs from server to server stands in `kinds.py`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from inference_client.adapters.base import Parser, SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import dumped, items, json_object, json_value, obj, text_of
from inference_client.adapters.kinds import GENERIC, Kind, api_url
from inference_client.adapters.requests import (
    bare_embeddings,
    check_embed_keys,
    encoded,
    given,
    post,
    refuse,
)
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    ImagePart,
    Message,
    ReasoningDelta,
    Server,
    TextDelta,
    TextPart,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import EMBEDDINGS, OPENAI, merged, usage_read

_DONE = b"[DONE]"
_OPTIONS = ("temperature", "top_p", "seed", "tool_choice", "response_format")


class OpenAIChatParser(SseParser):
    """Reads chunks of `chat.completion.chunk`, and of the older `text_completion`."""

    def __init__(self, kind: Kind = GENERIC) -> None:
        super().__init__()
        self._running = kind.running_usage
        self._usage: dict[str, Any] | None = None
        self._calls: list[str | None] = []

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, OPENAI, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        data = event.data
        if data.startswith(_DONE):
            self.ended = True
            return
        chunk = json_value(data)
        if not isinstance(chunk, dict):
            raise MalformedAnswer(code="not_an_object")
        if event.name == "error" or "error" in chunk:
            self._failed(chunk)
        choices = chunk.get("choices")
        if choices and isinstance(choices, list) and isinstance(choices[0], dict):
            choice = choices[0]
            delta = choice.get("delta")
            self._delta(delta if isinstance(delta, dict) else choice, out)
            if choice.get("finish_reason"):
                self.finish_raw = text_of(choice["finish_reason"]) or self.finish_raw
        if self.served_model is None or self.upstream_id is None:
            self.served_model = text_of(chunk.get("model")) or self.served_model
            self.upstream_id = text_of(chunk.get("id")) or self.upstream_id
        usage = chunk.get("usage")
        if usage:
            self._add_usage(usage)
        elif "x_groq" in chunk:
            self._add_usage(obj(chunk["x_groq"]).get("usage"))

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self._failed(answer)
        choice = next((obj(choice) for choice in items(answer.get("choices"))), None)
        if choice is not None:
            self._delta(obj(choice.get("message")) or choice, out)
            self.finish_raw = text_of(choice.get("finish_reason"))
        self.served_model = text_of(answer.get("model"))
        self.upstream_id = text_of(answer.get("id"))
        self._add_usage(answer.get("usage"))

    def _failed(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error") or "choices" not in chunk:
            self.error = self.error or from_value(chunk)

    def _add_usage(self, block: object) -> None:
        if isinstance(block, dict):
            self.usage_is_running = self._running
            self._usage = merged(self._usage, block)

    def _delta(self, delta: Mapping[str, Any], out: list[Event]) -> None:
        # The order is that of how often a field comes; most deltas leave after the first one.
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                out.append(TextDelta(content))
                if len(delta) == 1:
                    return
            else:
                self._parts(content, out)
        reasoning = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))
        if reasoning:
            # Where both come in one chunk the reasoning was thought first.
            out.insert(len(out) - 1 if content and out else len(out), ReasoningDelta(reasoning))
        for key in ("text", "refusal"):
            text = text_of(delta.get(key))
            if text and not content:
                out.append(TextDelta(text))
        for call in items(delta.get("tool_calls")):
            self._tool_call(obj(call), out)
        legacy = delta.get("function_call")
        if legacy:
            self._tool_call({"index": 0, "function": legacy}, out)

    def _parts(self, content: object, out: list[Event]) -> None:
        """Mistral sends content as a list of parts, its reasoning among them."""
        for part in map(obj, items(content)):
            thought = "".join(text_of(obj(piece).get("text")) or "" for piece in items(part.get("thinking")))
            if thought:
                out.append(ReasoningDelta(thought))
            text = text_of(part.get("text"))
            if text:
                out.append(TextDelta(text))

    def _tool_call(self, call: Mapping[str, Any], out: list[Event]) -> None:
        function = obj(call.get("function"))
        call_id, name = text_of(call.get("id")), text_of(function.get("name"))
        arguments = function.get("arguments")
        index = call.get("index")
        if not isinstance(index, int):
            # Servers without an index send whole calls, so a new id or name begins a new one.
            if not self._calls or (name and call_id != self._calls[-1]) or (name and call_id is None):
                self._calls.append(call_id)
            index = len(self._calls) - 1
        out.append(ToolCallDelta(index, call_id, name, dumped(arguments) if arguments else ""))


class OpenAIChat:
    """Requests and answers in the OpenAI shape."""

    name: ClassVar[str] = "openai_chat"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        body: dict[str, Any] = {**kind.extra_body, **request.extra}
        body |= {"model": request.model, "messages": [message_json(message) for message in request.messages]}
        body[kind.cap_field] = request.max_output_tokens
        body |= given(**{name: getattr(request, name) for name in _OPTIONS})
        body |= given(stop=list(request.stop) or None, tools=list(request.tools or ()) or None)
        body["stream"] = True
        if kind.asks_usage:
            running = {"continuous_usage_stats": True} if kind.running_usage else {}
            body["stream_options"] = {"include_usage": True, **running}
        url = api_url(server, kind, kind.chat_path, request.model)
        return post(server, kind, url, body, accept="text/event-stream")

    def parser(self, kind: Kind) -> Parser:
        """A fresh parser for one answer."""
        return OpenAIChatParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors as floats. Raises Unsupported where this kind has no embeddings."""
        if kind.embed_path is None:
            raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")
        body: dict[str, Any] = {**request.extra, "model": request.model, "input": list(request.inputs)}
        body["encoding_format"] = kind.embed_encoding
        # What a text is for is a hint, which a server that does not know it can do without.
        hinted = kind.embed_keys is None or "input_type" in kind.embed_keys
        body |= given(input_type=request.input_type if hinted else None, dimensions=request.dimensions)
        check_embed_keys(kind, body)
        url = api_url(server, kind, kind.embed_path, request.model)
        return post(server, kind, url, body, accept="application/json")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """The vectors in `body`, in the order of the inputs. Raises MalformedAnswer."""
        answer = json_object(body)
        if answer.get("error"):
            raise from_value(answer)
        rows = [obj(row) for row in items(answer.get("data"))]
        rows.sort(key=lambda row: row["index"] if isinstance(row.get("index"), int) else 0)
        return bare_embeddings(
            [row.get("embedding") for row in rows],
            count,
            usage_read(obj(answer.get("usage")), EMBEDDINGS),
            text_of(answer.get("model")),
            packed_as="b" if kind.embed_encoding == "base64_int8" else "f",
        )


def message_json(message: Message) -> dict[str, Any]:
    """One message in the OpenAI shape."""
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


def _part_json(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{encoded(part)}"}}

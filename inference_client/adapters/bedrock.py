"""Amazon Bedrock: Converse, and the frames of raw model answers.

It is sent with a Bedrock API key (bearer) or signed with AWS access keys (see `sigv4.py`).

The numbers stand in the `metadata` frame, after `messageStop`.
"""

from abc import abstractmethod
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import orjson

from inference_client.adapters.anthropic_messages import AnthropicParser
from inference_client.adapters.base import Parser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind, model_url
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
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.eventstream import EventStreamDecoder, Frame
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    Message,
    ReasoningDelta,
    Server,
    TextDelta,
    TextPart,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import BEDROCK, merged, usage_read


class FrameParser(Parser):
    """A Parser over binary frames."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._frames = EventStreamDecoder()

    @abstractmethod
    def _on_payload(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None: ...

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for frame in self._frames.feed(data):
            self._on_frame(frame, out)

    def _flush(self, out: list[Event]) -> None:
        """A frame that is not whole means nothing."""

    def _on_frame(self, frame: Frame, out: list[Event]) -> None:
        payload = json_object(frame.payload or b"{}")
        if frame.headers.get(":message-type", "event") == "event":
            self._on_payload(frame.headers.get(":event-type", ""), payload, out)
            return
        name = frame.headers.get(":exception-type") or frame.headers.get(":error-code") or "exception"
        said = text_of(payload.get("message")) or frame.headers.get(":error-message")
        self.error = self.error or from_value({"error": {"type": name, "message": said}})


class ConverseParser(FrameParser):
    """Reads ConverseStream and the answers of Converse."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._usage: dict[str, Any] | None = None
        self._calls: dict[int, int] = {}

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, BEDROCK, precount=precount)

    def _on_payload(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None:
        index = payload.get("contentBlockIndex")
        number = index if isinstance(index, int) else 0
        if name == "contentBlockDelta":
            self._block(number, obj(payload.get("delta")), out)
        elif name == "contentBlockStart":
            self._block(number, obj(payload.get("start")), out)
        elif name == "messageStop":
            self.finish_raw = text_of(payload.get("stopReason"))
        elif name == "metadata":
            self.ended = True
            self._add_usage(payload.get("usage"))

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        content = obj(obj(answer.get("output")).get("message")).get("content")
        for index, block in enumerate(map(obj, items(content))):
            self._block(index, block, out)
        self.finish_raw = text_of(answer.get("stopReason"))
        self._add_usage(answer.get("usage"))

    def _block(self, index: int, block: Mapping[str, Any], out: list[Event]) -> None:
        if text := text_of(block.get("text")):
            out.append(TextDelta(text))
        reasoning = obj(block.get("reasoningContent"))
        thought = text_of(reasoning.get("text")) or text_of(obj(reasoning.get("reasoningText")).get("text"))
        if thought:
            out.append(ReasoningDelta(thought))
        tool = block.get("toolUse")
        if isinstance(tool, dict):
            number = self._calls.setdefault(index, len(self._calls))
            given_input = tool.get("input", "")
            # Streams bring the input as pieces of JSON text, whole answers as a value.
            piece = given_input if isinstance(given_input, str) else orjson.dumps(given_input).decode()
            out.append(
                ToolCallDelta(number, text_of(tool.get("toolUseId")), text_of(tool.get("name")), piece)
            )

    def _add_usage(self, block: object) -> None:
        if isinstance(block, dict):
            self._usage = merged(self._usage, block)


class InvokeParser(FrameParser):
    """Reads InvokeModelWithResponseStream: frames that hold the model family's own chunks.

    Anthropic's chunks are read by its own parser. For other families text and finish reason are taken where
    they usually stand; their numbers come with the last chunk, from the gateway.
    """

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._anthropic = AnthropicParser()

    def usage(self, precount: int | None = None) -> Usage:
        return self._anthropic.usage(precount)

    def _on_payload(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None:
        inner = payload.get("bytes")
        self._whole(_unpacked(inner) if isinstance(inner, str) else payload, out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        inner = self._anthropic
        if isinstance(answer.get("type"), str):
            inner.on_message(answer, out)
            self.finish_raw, self.served_model = inner.finish_raw, inner.served_model
            self.upstream_id, self.error = inner.upstream_id, self.error or inner.error
        else:
            texts = (text_of(answer.get(key)) for key in ("outputText", "generation", "completion"))
            out.extend(TextDelta(text) for text in texts if text)
            reasons = (answer.get(key) for key in ("completionReason", "stop_reason"))
            self.finish_raw = next(filter(None, map(text_of, reasons)), self.finish_raw)
        self.ended = self.ended or "amazon-bedrock-invocationMetrics" in answer


class Bedrock:
    """Requests to ConverseStream."""

    name: ClassVar[str] = "bedrock"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        body: dict[str, Any] = {
            **request.extra,
            "messages": list(_messages(request.messages)),
            "inferenceConfig": given(
                maxTokens=request.max_output_tokens,
                temperature=request.temperature,
                topP=request.top_p,
                stopSequences=list(request.stop) or None,
            ),
        }
        system = system_text(request.messages)
        if system:
            body["system"] = [{"text": system}]
        if request.tools:
            body["toolConfig"] = {"tools": [_tool(function) for function in functions(request)]}
            if request.tool_choice is not None:
                body["toolConfig"]["toolChoice"] = _choice(request.tool_choice)
        url = model_url(server, kind, kind.chat_path, request.model)
        return post(server, kind, url, body, accept="application/vnd.amazon.eventstream")

    def parser(self, kind: Kind) -> ConverseParser:
        """A fresh parser for one answer."""
        return ConverseParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """Converse makes no embeddings. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings here. Choose another server for them.")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """Converse makes no embeddings. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings here. Choose another server for them.")


def _unpacked(inner: str) -> dict[str, Any]:
    """The chunk inside a frame, which is JSON in base64."""
    try:
        return json_object(b64decode(inner, validate=True))
    except ValueError as exc:
        raise MalformedAnswer(code="frame_payload") from exc


def _messages(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            content = [{"text": plain(message)}]
            results.append({"toolResult": {"toolUseId": message.tool_call_id or "", "content": content}})
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if message.role in ("user", "assistant"):
            yield {"role": message.role, "content": list(_content(message))}
    if results:
        yield {"role": "user", "content": results}


def _content(message: Message) -> Iterator[dict[str, Any]]:
    for part in parts(message):
        if isinstance(part, TextPart):
            yield {"text": part.text}
        else:
            form = part.media_type.rpartition("/")[2]
            yield {"image": {"format": form, "source": {"bytes": encoded(part)}}}
    for call in message.tool_calls:
        yield {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments_of(call)}}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    spec = given(
        name=function.get("name"), description=function.get("description"), inputSchema={"json": schema}
    )
    return {"toolSpec": spec}


def _choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"any" if choice == "required" else "auto": {}}
    return {"tool": {"name": obj(choice.get("function")).get("name")}}

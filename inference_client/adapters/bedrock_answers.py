"""Amazon Bedrock's answers: those of Converse, and the raw ones of Invoke, each in the words of the model's maker."""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from inference_client.adapters.anthropic_messages import AnthropicParser
from inference_client.adapters.base import FrameParser, Parser
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kind import Kind
from inference_client.errors import MalformedAnswer
from inference_client.types import Event, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from inference_client.usage import UsageShape

_NOVA = ("contentBlockDelta", "contentBlockStart", "messageStop", "metadata")
_TEXTS = ("outputText", "generation", "completion", "text", "content")
_REASONS = ("completionReason", "stop_reason", "finish_reason")


class ConverseParser(FrameParser):
    """Reads ConverseStream and the answers of Converse."""

    shape = UsageShape(
        input=("inputTokens",),
        output=("outputTokens",),
        total=("totalTokens",),
        cache_read=("cacheReadInputTokens",),
        cache_write=("cacheWriteInputTokens",),
        input_has_cache=False,
        detail={
            "cache_write_short": ("cacheDetails.ttl=5m.inputTokens",),
            "cache_write_long": ("cacheDetails.ttl=1h.inputTokens",),
        },
    )

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._calls: dict[int, int] = {}

    def on_event(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None:
        """Append what the event `name` means to `out`; for answers that wrap such events."""
        self._on_payload(name, payload, out)

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
        if "output" not in answer and text_of(answer.get("message")):
            self._fail(answer)
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


class InvokeParser(FrameParser):
    """Reads Invoke and InvokeModelWithResponseStream: the maker's own answer, or frames that hold its chunks.

    Anthropic's are read by its own parser, Nova's are Converse's in other clothes. Of the other makers text and
    finish reason are taken where they usually stand, and no numbers: those are the gateway's, beside the answer.
    """

    shape = ConverseParser.shape

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._anthropic = AnthropicParser(kind)
        self._nova = ConverseParser(kind)

    def usage(self, precount: int | None = None) -> Usage:
        """The usage in Anthropic's block, else in Nova's."""
        found = self._anthropic.usage(precount)
        return found if found.state != "absent" else self._nova.usage(precount)

    def _on_payload(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None:
        inner = payload.get("bytes")
        self._whole(_unpacked(inner) if isinstance(inner, str) else payload, out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        nova = next((name for name in _NOVA if name in answer), None)
        if answer.get("type") == "message":
            out += self._anthropic.whole(orjson.dumps(answer))
            self._take(self._anthropic)
        elif isinstance(answer.get("type"), str):
            self._anthropic.on_message(answer, out)
            self._take(self._anthropic)
        elif "message" in obj(answer.get("output")):
            out += self._nova.whole(orjson.dumps(answer))
            self._take(self._nova)
        elif nova is not None:
            self._nova.on_event(nova, obj(answer[nova]), out)
            self._take(self._nova)
        else:
            for row in _rows(answer):
                self._other(row, out)
        self.ended = self.ended or "amazon-bedrock-invocationMetrics" in answer

    def _take(self, inner: Parser) -> None:
        self.finish_raw, self.served_model = inner.finish_raw, inner.served_model
        self.upstream_id, self.error = inner.upstream_id or self.upstream_id, self.error or inner.error

    def _other(self, row: Mapping[str, Any], out: list[Event]) -> None:
        said = {**row, **obj(row.get("message")), **obj(row.get("delta"))}
        text = next(filter(None, (text_of(said.get(key)) for key in _TEXTS)), None)
        if text:
            out.append(TextDelta(text))
        reasons = (text_of(row.get(key)) for key in _REASONS)
        self.finish_raw = next(filter(None, reasons), self.finish_raw)


def _rows(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Where the text stands: in the answer itself, or in the first row of a list."""
    yield answer
    for name in ("results", "generations", "outputs", "choices"):
        yield from map(obj, items(answer.get(name))[:1])


def _unpacked(inner: str) -> dict[str, Any]:
    """The chunk inside a frame, which is JSON in base64."""
    try:
        return json_object(b64decode(inner, validate=True))
    except ValueError as exc:
        raise MalformedAnswer(code="frame_payload") from exc

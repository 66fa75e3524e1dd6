"""Cohere: chat in its second and first version, embeddings and rerank. Answers only."""

from collections.abc import Mapping
from typing import Any

from inference_client.adapters.base import LinesParser, SseParser
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind
from inference_client.adapters.requests import bare_embeddings
from inference_client.sse import SseEvent
from inference_client.types import Embeddings, Event, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from inference_client.usage import COHERE, usage_read


class CohereParser(SseParser):
    """Reads `/v2/chat`."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: Mapping[str, Any] = {}

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, COHERE, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        if event.data.startswith(b"[DONE]"):
            return
        message = json_object(event.data)
        kind = message.get("type") or event.name
        delta = obj(message.get("delta"))
        inner = obj(delta.get("message"))
        index = message.get("index")
        if kind in ("content-start", "content-delta"):
            self._content(obj(inner.get("content")), out)
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._call(index if isinstance(index, int) else 0, obj(inner.get("tool_calls")), out)
        elif kind == "message-start":
            self.upstream_id = text_of(message.get("id"))
        elif kind == "message-end":
            self.ended = True
            self.finish_raw = text_of(delta.get("finish_reason"))
            self._usage = obj(delta.get("usage"))
        if message.get("error") or delta.get("error"):
            self.error = self.error or from_value({"error": message.get("error") or delta.get("error")})

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        message = obj(answer.get("message"))
        for part in map(obj, items(message.get("content"))):
            self._content(part, out)
        for index, call in enumerate(map(obj, items(message.get("tool_calls")))):
            self._call(index, call, out)
        if isinstance(answer.get("message"), str):
            self.error = from_value(answer)
        self.upstream_id = text_of(answer.get("id"))
        self.finish_raw = text_of(answer.get("finish_reason"))
        self._usage = obj(answer.get("usage"))

    def _content(self, part: Mapping[str, Any], out: list[Event]) -> None:
        if thought := text_of(part.get("thinking")):
            out.append(ReasoningDelta(thought))
        if text := text_of(part.get("text")):
            out.append(TextDelta(text))

    def _call(self, index: int, call: Mapping[str, Any], out: list[Event]) -> None:
        function = obj(call.get("function"))
        arguments = text_of(function.get("arguments")) or ""
        out.append(ToolCallDelta(index, text_of(call.get("id")), text_of(function.get("name")), arguments))


class CohereV1Parser(LinesParser):
    """Reads `/v1/chat`: lines of JSON, the last of which holds the whole response."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: Mapping[str, Any] = {}

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, COHERE, precount=precount)

    def _on_object(self, line: Mapping[str, Any], out: list[Event]) -> None:
        kind = line.get("event_type")
        if kind == "text-generation" and (text := text_of(line.get("text"))):
            out.append(TextDelta(text))
        elif kind == "stream-start":
            self.upstream_id = text_of(line.get("generation_id"))
        elif kind == "stream-end":
            self.ended = True
            self._take(obj(line.get("response")))
            self.finish_raw = text_of(line.get("finish_reason")) or self.finish_raw

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if text := text_of(answer.get("text")):
            out.append(TextDelta(text))
        elif "message" in answer:
            self.error = from_value(answer)
        self._take(answer)

    def _take(self, response: Mapping[str, Any]) -> None:
        self.upstream_id = text_of(response.get("generation_id")) or self.upstream_id
        self.finish_raw = text_of(response.get("finish_reason"))
        self._usage = obj(response.get("meta"))


def cohere_embeddings(body: bytes, count: int) -> Embeddings:
    """The vectors in `body` of `/v2/embed`. Raises MalformedAnswer."""
    answer = json_object(body)
    found = answer.get("embeddings")
    rows = items(found) or items(obj(found).get("float"))
    return bare_embeddings(rows, count, usage_read(obj(answer.get("meta")), COHERE), None)


def cohere_rerank(body: bytes) -> list[tuple[int, float]]:
    """(number of the document, score), best first. Raises MalformedAnswer."""
    rows = [obj(row) for row in items(json_object(body).get("results"))]
    return [
        (row["index"], float(row["relevance_score"]))
        for row in rows
        if isinstance(row.get("index"), int) and isinstance(row.get("relevance_score"), int | float)
    ]

"""Cohere: chat in its second version, embeddings; answers of its first version and of rerank."""

from collections.abc import Mapping
from typing import Any, ClassVar

from inference_client.adapters.base import LinesParser, SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind, api_url
from inference_client.adapters.openai_chat import message_json
from inference_client.adapters.requests import bare_embeddings, given, post, refuse
from inference_client.errors import Unsupported
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    ReasoningDelta,
    Server,
    TextDelta,
    ToolCallDelta,
    Usage,
)
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


class Cohere:
    """Requests to `/v2/chat` and `/v2/embed`."""

    name: ClassVar[str] = "cohere"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        body: dict[str, Any] = dict(request.extra)
        body |= {"model": request.model, "messages": [message_json(message) for message in request.messages]}
        body |= {"max_tokens": request.max_output_tokens, "stream": True}
        body |= given(
            temperature=request.temperature,
            p=request.top_p,
            seed=request.seed,
            stop_sequences=list(request.stop) or None,
            tools=list(request.tools or ()) or None,
            tool_choice=_choice(request.tool_choice),
            response_format=_format(request.response_format),
        )
        return post(server, kind, api_url(server, kind, kind.chat_path), body, accept="text/event-stream")

    def parser(self, kind: Kind) -> CohereParser:
        """A fresh parser for one answer."""
        return CohereParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors. Its models need to know what a text is for; unsaid it is a passage."""
        purpose = "search_query" if request.input_type == "query" else "search_document"
        body = {
            **request.extra,
            "model": request.model,
            "texts": list(request.inputs),
            "input_type": purpose,
            "embedding_types": ["float"],
            **given(output_dimension=request.dimensions),
        }
        return post(server, kind, api_url(server, kind, "/embed"), body, accept="application/json")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """The vectors in `body`, in the order of the inputs. Raises MalformedAnswer."""
        return cohere_embeddings(body, count)


def _choice(choice: str | Mapping[str, Any] | None) -> str | None:
    """`auto` is what Cohere does unasked; one named tool it cannot be held to."""
    if choice is None or choice == "auto":
        return None
    if isinstance(choice, str):
        return choice.upper()
    raise Unsupported(
        "Cohere cannot be made to call one named tool. Offer only that tool, with tool_choice required.",
        code="unsupported_option",
    )


def _format(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """OpenAI's `response_format` in Cohere's words."""
    if wanted is None or wanted.get("type") == "text":
        return None
    return {"type": "json_object", **given(json_schema=obj(wanted.get("json_schema")).get("schema"))}


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

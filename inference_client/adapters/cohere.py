"""Cohere: chat in its second version, embeddings; answers of its first version and of rerank."""

from collections.abc import Iterator, Mapping
from typing import Any

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import LinesParser, SseParser
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.requests import bare_embeddings, given, message_json
from inference_client.adapters.scripted import Answer, typed
from inference_client.errors import Unsupported
from inference_client.servers import Server
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from inference_client.usage import UsageShape, usage_read

SHAPE = UsageShape(
    input=("tokens.input_tokens", "billed_units.input_tokens"),
    output=("tokens.output_tokens", "billed_units.output_tokens"),
    cache_read=("cached_tokens",),
)


class CohereParser(SseParser):
    """Reads `/v2/chat`."""

    shape = SHAPE

    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        kind = message.get("type") or name
        delta = obj(message.get("delta"))
        inner = obj(delta.get("message"))
        index = message.get("index")
        if kind in ("content-start", "content-delta"):
            self._content(obj(inner.get("content")), out)
        elif kind == "tool-plan-delta":
            self._plan(inner, out)
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._call(index if isinstance(index, int) else 0, obj(inner.get("tool_calls")), out)
        elif kind == "message-start":
            self.upstream_id = text_of(message.get("id"))
        elif kind == "message-end":
            self.ended = True
            self.finish_raw = text_of(delta.get("finish_reason"))
            self._add_usage(delta.get("usage"))
        if message.get("error") or delta.get("error"):
            self._fail({"error": message.get("error") or delta.get("error")})

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        message = obj(answer.get("message"))
        self._plan(message, out)
        for part in map(obj, items(message.get("content"))):
            self._content(part, out)
        for index, call in enumerate(map(obj, items(message.get("tool_calls")))):
            self._call(index, call, out)
        if isinstance(answer.get("message"), str):
            self._fail(answer)
        self.upstream_id = text_of(answer.get("id"))
        self.finish_raw = text_of(answer.get("finish_reason"))
        self._add_usage(answer.get("usage"))

    def _plan(self, message: Mapping[str, Any], out: list[Event]) -> None:
        """What it is about to do with tools, thought before it is done."""
        if plan := text_of(message.get("tool_plan")):
            out.append(ReasoningDelta(plan))

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

    shape = SHAPE

    def _on_object(self, told: Mapping[str, Any], out: list[Event]) -> None:
        kind = told.get("event_type")
        if kind == "text-generation" and (text := text_of(told.get("text"))):
            out.append(TextDelta(text))
        elif kind == "stream-start":
            self.upstream_id = text_of(told.get("generation_id"))
        elif kind == "stream-end":
            self.ended = True
            self._take(obj(told.get("response")))
            self.finish_raw = text_of(told.get("finish_reason")) or self.finish_raw

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if text := text_of(answer.get("text")):
            out.append(TextDelta(text))
        elif "message" in answer:
            self._fail(answer)
        self._take(answer)

    def _take(self, response: Mapping[str, Any]) -> None:
        self.upstream_id = text_of(response.get("generation_id")) or self.upstream_id
        self.finish_raw = text_of(response.get("finish_reason"))
        self._add_usage(response.get("meta"))


class Cohere(Adapter):
    """Requests to `/v2/chat` and `/v2/embed`."""

    name = "cohere"
    parsers = {"v2/chat": CohereParser, "v1/chat": CohereV1Parser}
    kinds = (
        Kind(
            name="cohere",
            title="Cohere",
            grade="recorded",
            version_path="/v2",
            chat_path="/chat",
            embed_path="/embed",
            embed_batch=96,
            rerank_path="/rerank",
            models_path=None,
            leaves_premises=True,
            abort_stops_billing=False,
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer. Raises Unsupported."""
        body: dict[str, Any] = dict(request.extra)
        body |= {"model": request.model, "messages": [message_json(message) for message in request.messages]}
        body |= {"max_tokens": request.max_output_tokens, "stream": True}
        return body | given(
            temperature=request.temperature,
            p=request.top_p,
            seed=request.seed,
            stop_sequences=list(request.stop) or None,
            tools=list(request.tools or ()) or None,
            tool_choice=_choice(request.tool_choice),
            response_format=_format(request.response_format),
        )

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors. Its models need to know what a text is for; unsaid it is a passage."""
        purpose = "search_query" if request.input_type == "query" else "search_document"
        return {
            **request.extra,
            "model": request.model,
            "texts": list(request.inputs),
            "input_type": purpose,
            "embedding_types": ["float"],
            **given(output_dimension=request.dimensions),
        }

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`. Raises MalformedAnswer."""
        answer = json_object(body)
        found = answer.get("embeddings")
        if found is None and text_of(answer.get("message")):
            raise from_value(answer)
        rows = items(found) or next(filter(None, map(items, obj(found).values())), [])
        return bare_embeddings(rows, count, usage_read(obj(answer.get("meta")), SHAPE), None)

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Events of `/v2/chat`."""
        yield typed({"type": "message-start", "id": "co-1", "delta": {"message": {"role": "assistant"}}})
        for word in answer.words:
            content = {"message": {"content": {"text": word}}}
            yield typed({"type": "content-delta", "index": 0, "delta": content})
        tokens = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
        reason = "COMPLETE" if answer.finish == "stop" else "MAX_TOKENS"
        told = (
            {}
            if answer.usage == "none"
            else {"usage": {"tokens": tokens, "cached_tokens": answer.cache_read}}
        )
        yield typed({"type": "message-end", "delta": {"finish_reason": reason, **told}})


ADAPTER = Cohere()


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


def cohere_rerank(body: bytes) -> list[tuple[int, float]]:
    """(number of the document, score), best first, as most others say it too. Raises MalformedAnswer."""
    answer = json_object(body)
    rows = [obj(row) for row in items(answer.get("results")) or items(answer.get("data"))]
    return [
        (row["index"], float(row["relevance_score"]))
        for row in rows
        if isinstance(row.get("index"), int) and isinstance(row.get("relevance_score"), int | float)
    ]

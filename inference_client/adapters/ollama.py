"""Ollama's own routes: lines of JSON, usage on the last one."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import LinesParser
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, seconds, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.requests import arguments_of, bare_embeddings, encoded, given, parts, plain
from inference_client.adapters.scripted import MODEL, Answer, line
from inference_client.servers import Server
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    ImagePart,
    Json,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from inference_client.usage import UsageShape, usage_read

_COUNTS = ("prompt_eval_count", "eval_count")


class OllamaParser(LinesParser):
    """Reads the lines of `/api/chat` and `/api/generate`.

    Numbers that are zero are left out by the server, and so may be the input when the prompt was cached: a
    missing number stays unknown.
    """

    shape = UsageShape(input=("prompt_eval_count",), output=("eval_count",))

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._calls = 0

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        self._on_object(answer, out)

    def _on_object(self, told: Mapping[str, Any], out: list[Event]) -> None:
        if told.get("error"):
            self._fail(told)
            return
        message = obj(told.get("message"))
        thought = text_of(message.get("thinking")) or text_of(told.get("thinking"))
        if thought:
            out.append(ReasoningDelta(thought))
        text = text_of(message.get("content")) or text_of(told.get("response"))
        if text:
            out.append(TextDelta(text))
        for call in map(obj, items(message.get("tool_calls"))):
            function = obj(call.get("function"))
            arguments = orjson.dumps(function.get("arguments") or {}).decode()
            out.append(
                ToolCallDelta(self._calls, text_of(call.get("id")), text_of(function.get("name")), arguments)
            )
            self._calls += 1
        self.served_model = self.served_model or text_of(told.get("model"))
        if told.get("done") is True:
            self.ended = True
            self.finish_raw = text_of(told.get("done_reason")) or "stop"
            self._usage = {name: told[name] for name in _COUNTS if name in told}
            self.prefill_s = seconds(told.get("prompt_eval_duration"), per_second=1e9)
            self.load_s = seconds(told.get("load_duration"), per_second=1e9)


class Ollama(Adapter):
    """Requests to Ollama's own routes."""

    name = "ollama"
    content_type = "application/x-ndjson"
    parsers = {"api/chat": OllamaParser, "api/generate": OllamaParser}
    kinds = (
        Kind(
            name="ollama",
            title="Ollama",
            grade="recorded",
            version_path=None,
            chat_path="/api/chat",
            embed_path="/api/embed",
            models_path="/v1/models",
            refuses=frozenset({"tool_choice"}),
            health_path="/",
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        extra = dict(request.extra)
        options = given(
            num_predict=request.max_output_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop=list(request.stop) or None,
        )
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [_message(message) for message in request.messages],
            "stream": True,
            "options": {**obj(extra.pop("options", None)), **options},
        }
        body = {**extra, **body}
        if request.tools:
            body["tools"] = list(request.tools)
        wanted = _format(request.response_format)
        if wanted is not None:
            body["format"] = wanted
        return body

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors."""
        # A text over the window is an error to be told, not something to shorten behind our back.
        body = {"truncate": False, **request.extra, "model": request.model, "input": list(request.inputs)}
        return body | given(dimensions=request.dimensions)

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`. Raises MalformedAnswer."""
        answer = json_object(body)
        if answer.get("error"):
            raise from_value(answer)
        rows = items(answer.get("embeddings")) or [answer[name] for name in ("embedding",) if name in answer]
        usage = usage_read({name: answer[name] for name in _COUNTS if name in answer}, OllamaParser.shape)
        return bare_embeddings(rows, count, usage, text_of(answer.get("model")))

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Lines of `/api/chat`."""
        for word in answer.words:
            yield line({"model": MODEL, "message": {"role": "assistant", "content": word}, "done": False})
        last: dict[str, Any] = {"model": MODEL, "message": {"role": "assistant", "content": ""}, "done": True}
        last["done_reason"] = answer.finish
        if answer.usage not in ("none", "zero"):
            last |= {"prompt_eval_count": answer.input_tokens, "eval_count": answer.output_tokens}
        yield line(last)


ADAPTER = Ollama()


def _message(message: Message) -> dict[str, Any]:
    result: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": plain(message),
    }
    images = [encoded(part) for part in parts(message) if isinstance(part, ImagePart)]
    if images:
        result["images"] = images
    if message.tool_calls:
        result["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_of(call)}} for call in message.tool_calls
        ]
    if message.role == "tool" and message.name is not None:
        result["tool_name"] = message.name
    return result


def _format(wanted: Mapping[str, Any] | None) -> Json:
    """OpenAI's `response_format` in Ollama's words: a schema, or `json`."""
    if wanted is None or wanted.get("type") == "text":
        return None
    return obj(wanted.get("json_schema")).get("schema") or "json"

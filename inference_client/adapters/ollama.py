"""Ollama's own routes: lines of JSON, usage on the last one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from inference_client.adapters.base import LinesParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import items, json_object, obj, text_of
from inference_client.adapters.kinds import Kind, root_url
from inference_client.adapters.requests import (
    arguments_of,
    bare_embeddings,
    encoded,
    given,
    parts,
    plain,
    post,
    refuse,
)
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    ImagePart,
    Json,
    Message,
    ReasoningDelta,
    Server,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import OLLAMA, usage_read

_COUNTS = ("prompt_eval_count", "eval_count")


class OllamaParser(LinesParser):
    """Reads the lines of `/api/chat` and `/api/generate`.

    Numbers that are zero are left out by the server, and so may be the input when the prompt was cached: a
    missing number stays unknown.
    """

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: dict[str, Any] | None = None
        self._calls = 0

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, OLLAMA, precount=precount)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        self._on_object(answer, out)

    def _on_object(self, line: Mapping[str, Any], out: list[Event]) -> None:
        if line.get("error"):
            self.error = self.error or from_value(line)
            return
        message = obj(line.get("message"))
        thought = text_of(message.get("thinking")) or text_of(line.get("thinking"))
        if thought:
            out.append(ReasoningDelta(thought))
        text = text_of(message.get("content")) or text_of(line.get("response"))
        if text:
            out.append(TextDelta(text))
        for call in map(obj, items(message.get("tool_calls"))):
            function = obj(call.get("function"))
            arguments = orjson.dumps(function.get("arguments") or {}).decode()
            out.append(
                ToolCallDelta(self._calls, text_of(call.get("id")), text_of(function.get("name")), arguments)
            )
            self._calls += 1
        self.served_model = self.served_model or text_of(line.get("model"))
        if line.get("done") is True:
            self.ended = True
            self.finish_raw = text_of(line.get("done_reason")) or "stop"
            self._usage = {name: line[name] for name in _COUNTS if name in line}


class Ollama:
    """Requests to Ollama's own routes."""

    name: ClassVar[str] = "ollama"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
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
        return post(server, kind, root_url(server, kind.chat_path), body, accept="application/x-ndjson")

    def parser(self, kind: Kind) -> OllamaParser:
        """A fresh parser for one answer."""
        return OllamaParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors."""
        # A text over the window is an error to be told, not something to shorten behind our back.
        body = {"truncate": False, **request.extra, "model": request.model, "input": list(request.inputs)}
        return post(server, kind, root_url(server, "/api/embed"), body, accept="application/json")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """The vectors in `body`, in the order of the inputs. Raises MalformedAnswer."""
        answer = json_object(body)
        counts = {name: answer[name] for name in _COUNTS if name in answer}
        return bare_embeddings(
            items(answer.get("embeddings")), count, usage_read(counts, OLLAMA), text_of(answer.get("model"))
        )


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

"""Google Gemini and Vertex AI: `generateContent`, streamed with `alt=sse`."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from inference_client.adapters.base import SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import dumped, items, json_object, json_objects, obj, text_of
from inference_client.adapters.kinds import Kind, api_url
from inference_client.adapters.requests import (
    arguments_of,
    bare_embeddings,
    encoded,
    functions,
    given,
    parts,
    plain,
    post,
    refuse,
    system_text,
)
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
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
from inference_client.usage import GEMINI, merged, number, usage_read

_ADDENDS = ("promptTokenCount", "candidatesTokenCount", "toolUsePromptTokenCount", "thoughtsTokenCount")
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


class GeminiParser(SseParser):
    """Reads chunks that are whole responses in small; numbers on them are cumulative, the last ones count."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: dict[str, Any] | None = None
        self._calls = 0

    @property
    def finish_reason(self) -> FinishReason | None:
        """STOP is said for tool calls as well."""
        reason = super().finish_reason
        return "tool_calls" if reason == "stop" and self._calls else reason

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, GEMINI, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        if event.data.startswith(b"[DONE]"):
            return
        for chunk in json_objects(event.data):
            self._whole(chunk, out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self.error = self.error or from_value(answer)
        for candidate in map(obj, items(answer.get("candidates"))[:1]):
            for part in map(obj, items(obj(candidate.get("content")).get("parts"))):
                self._part(part, out)
            self.finish_raw = text_of(candidate.get("finishReason")) or self.finish_raw
        blocked = text_of(obj(answer.get("promptFeedback")).get("blockReason"))
        if blocked:
            self.finish_raw = self.finish_raw or blocked
        self.served_model = text_of(answer.get("modelVersion")) or self.served_model
        self.upstream_id = text_of(answer.get("responseId")) or self.upstream_id
        usage = answer.get("usageMetadata")
        if isinstance(usage, dict):
            self.usage_is_running = True
            # The last block counts; fields that it lacks are taken from earlier ones, unless it adds up alone.
            self._usage = usage if _adds_up(usage) else merged(self._usage, usage)

    def _part(self, part: Mapping[str, Any], out: list[Event]) -> None:
        text = text_of(part.get("text"))
        if text:
            out.append(ReasoningDelta(text) if part.get("thought") is True else TextDelta(text))
        call = part.get("functionCall")
        if isinstance(call, dict):
            arguments = dumped(call.get("args") or {})
            out.append(
                ToolCallDelta(self._calls, text_of(call.get("id")), text_of(call.get("name")), arguments)
            )
            self._calls += 1


class Gemini:
    """Requests to Gemini."""

    name: ClassVar[str] = "gemini"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        config = given(
            maxOutputTokens=request.max_output_tokens,
            temperature=request.temperature,
            topP=request.top_p,
            seed=request.seed,
            stopSequences=list(request.stop) or None,
        )
        if request.response_format is not None and request.response_format.get("type") != "text":
            schema = obj(request.response_format.get("json_schema")).get("schema")
            config |= given(responseMimeType="application/json", responseJsonSchema=schema)
        system = system_text(request.messages)
        names = {call.id: call.name for message in request.messages for call in message.tool_calls}
        body = {
            **request.extra,
            "contents": list(_contents(request.messages, names)),
            "generationConfig": {**obj(request.extra.get("generationConfig")), **config},
            **given(systemInstruction={"parts": [{"text": system}]} if system else None),
        }
        if request.tools:
            body["tools"] = [{"functionDeclarations": functions(request)}]
        if request.tool_choice is not None:
            body["toolConfig"] = {"functionCallingConfig": _choice(request.tool_choice)}
        return post(server, kind, _url(server, kind, request.model, "streamGenerateContent?alt=sse"), body)

    def parser(self, kind: Kind) -> GeminiParser:
        """A fresh parser for one answer."""
        return GeminiParser(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors."""
        each = {"model": f"models/{request.model}", **request.extra}
        each |= given(outputDimensionality=request.dimensions, taskType=_task(request.input_type))
        rows = [{**each, "content": {"parts": [{"text": text}]}} for text in request.inputs]
        return post(server, kind, _url(server, kind, request.model, "batchEmbedContents"), {"requests": rows})

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """The vectors in `body`, in the order of the inputs; no usage is told. Raises MalformedAnswer."""
        rows = [obj(row).get("values") for row in items(json_object(body).get("embeddings"))]
        return bare_embeddings(rows, count, Usage(), None)


def _url(server: Server, kind: Kind, model: str, verb: str) -> str:
    return api_url(server, kind, f"/models/{quote(model, safe='')}:{verb}")


def _contents(messages: tuple[Message, ...], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role == "tool":
            name = message.name or names.get(message.tool_call_id or "", "")
            answer = {"name": name, "response": {"result": plain(message)}}
            yield {"role": "user", "parts": [{"functionResponse": answer}]}
        elif message.role in ("user", "assistant"):
            calls = [
                {"functionCall": {"name": call.name, "args": arguments_of(call)}}
                for call in message.tool_calls
            ]
            yield {"role": "user" if message.role == "user" else "model", "parts": [*_parts(message), *calls]}


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    for part in parts(message):
        if isinstance(part, TextPart):
            yield {"text": part.text}
        else:
            yield {"inlineData": {"mimeType": part.media_type, "data": encoded(part)}}


def _choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"mode": _MODES.get(choice, "AUTO")}
    return {"mode": "ANY", "allowedFunctionNames": [obj(choice.get("function")).get("name")]}


def _adds_up(usage: Mapping[str, Any]) -> bool:
    return usage.get("totalTokenCount") == sum(number(usage.get(name)) or 0 for name in _ADDENDS)


def _task(input_type: str | None) -> str | None:
    return {"query": "RETRIEVAL_QUERY", "passage": "RETRIEVAL_DOCUMENT"}.get(input_type or "")

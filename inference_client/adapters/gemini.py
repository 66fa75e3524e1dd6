"""Google Gemini and Vertex AI: `generateContent`, streamed with `alt=sse`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import SseParser
from inference_client.adapters.counts import as_sent
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import dumped, items, json_object, json_objects, obj, text_of
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.requests import (
    arguments_of,
    bare_embeddings,
    blocks,
    encoded,
    functions,
    given,
    plain,
    system_text,
    turns,
)
from inference_client.adapters.scripted import MODEL, Answer, sse
from inference_client.servers import Server
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    FinishReason,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from inference_client.usage import UsageShape, merged, number

_ADDENDS = ("promptTokenCount", "candidatesTokenCount", "toolUsePromptTokenCount", "thoughtsTokenCount")
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


class GeminiParser(SseParser):
    """Reads chunks that are whole responses in small; numbers on them are cumulative, the last ones count."""

    shape = UsageShape(
        input=("promptTokenCount",),
        output=("candidatesTokenCount",),
        cache_read=("cachedContentTokenCount",),
        reasoning=("thoughtsTokenCount",),
        input_more=("toolUsePromptTokenCount",),
        output_has_reasoning=False,
        detail={
            "input_audio": ("promptTokensDetails.modality=AUDIO.tokenCount",),
            "input_image": ("promptTokensDetails.modality=IMAGE.tokenCount",),
            "output_audio": ("candidatesTokensDetails.modality=AUDIO.tokenCount",),
        },
    )

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._calls = 0

    @property
    def finish_reason(self) -> FinishReason | None:
        """STOP is said for tool calls as well."""
        reason = super().finish_reason
        return "tool_calls" if reason == "stop" and self._calls else reason

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        """Errors were seen wrapped in a list."""
        if not event.data.startswith(b"[DONE]"):
            for chunk in json_objects(event.data):
                self._on_message(chunk, event.name, out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        self._on_message(answer, None, out)

    def _on_message(self, answer: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        if answer.get("error"):
            self._fail(answer)
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


_GEMINI = Kind(
    name="gemini",
    title="Google Gemini",
    aliases=("google",),
    grade="recorded",
    auth="x-goog-api-key",
    version_path="/v1beta",
    chat_path="/models/{model}:streamGenerateContent?alt=sse",
    embed_path="/models/{model}:batchEmbedContents",
    embed_batch=100,
    images="gemini",
    counts=Counting(
        path="/v1beta/models/{model}:countTokens",
        ask=as_sent(
            "contents",
            "systemInstruction",
            "tools",
            "toolConfig",
            wrapped=lambda request, body: {
                "generateContentRequest": {"model": f"models/{request.model}", **body}
            },
        ),
        error_pct=1.0,
    ),
    leaves_premises=True,
    abort_stops_billing=False,
)


class Gemini(Adapter):
    """Requests to Gemini."""

    name = "gemini"
    parsers = {"streamGenerateContent": GeminiParser, "generateContent": GeminiParser}
    kinds = (
        _GEMINI,
        replace(
            _GEMINI,
            name="vertexai",
            title="Google Vertex AI",
            aliases=("vertex",),
            auth="bearer",
            version_path="/v1",
            counts=None,
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        system = system_text(request.messages)
        names = {call.id: call.name for message in request.messages for call in message.tool_calls}
        said = turns(request.messages, content=_parts, result=lambda message: _result(message, names))
        body: dict[str, Any] = {
            **request.extra,
            "contents": [
                {"role": "user" if role == "user" else "model", "parts": parts} for role, parts in said
            ],
            "generationConfig": {**obj(request.extra.get("generationConfig")), **_config(request)},
            **given(systemInstruction={"parts": [{"text": system}]} if system else None),
        }
        if request.tools:
            body["tools"] = [{"functionDeclarations": functions(request)}]
        if request.tool_choice is not None:
            body["toolConfig"] = {"functionCallingConfig": _choice(request.tool_choice)}
        return body

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors."""
        each = {"model": f"models/{request.model}", **request.extra}
        each |= given(outputDimensionality=request.dimensions, taskType=_task(request.input_type))
        return {"requests": [{**each, "content": {"parts": [{"text": text}]}} for text in request.inputs]}

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`; no usage is told. Raises MalformedAnswer."""
        answer = json_object(body)
        if answer.get("error"):
            raise from_value(answer)
        rows = items(answer.get("embeddings")) or [answer.get("embedding")]
        return bare_embeddings([obj(row).get("values") for row in rows], count, Usage(), None)

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Chunks of `streamGenerateContent?alt=sse`, each with the numbers so far."""
        for place, word in enumerate(answer.words, 1):
            candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": [{"text": word}]}}
            last = place == len(answer.words)
            if last:
                candidate["finishReason"] = "STOP" if answer.finish == "stop" else "MAX_TOKENS"
            chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": MODEL, "responseId": "g-1"}
            if answer.usage != "none":
                output = answer.output_tokens if last else place
                chunk["usageMetadata"] = {
                    "promptTokenCount": answer.input_tokens,
                    "cachedContentTokenCount": answer.cache_read,
                    "candidatesTokenCount": output,
                    "totalTokenCount": answer.input_tokens + output,
                }
            yield sse(chunk)


ADAPTER = Gemini()


def _config(request: ChatRequest) -> dict[str, Any]:
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
    return config


def _parts(message: Message) -> list[Any]:
    return blocks(
        message,
        text=lambda text: {"text": text},
        picture=lambda part: {"inlineData": {"mimeType": part.media_type, "data": encoded(part)}},
        call=lambda call: {"functionCall": {"name": call.name, "args": arguments_of(call)}},
    )


def _result(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    name = message.name or names.get(message.tool_call_id or "", "")
    return {"functionResponse": {"name": name, "response": {"result": plain(message)}}}


def _choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"mode": _MODES.get(choice, "AUTO")}
    return {"mode": "ANY", "allowedFunctionNames": [obj(choice.get("function")).get("name")]}


def _adds_up(usage: Mapping[str, Any]) -> bool:
    return usage.get("totalTokenCount") == sum(number(usage.get(name)) or 0 for name in _ADDENDS)


def _task(input_type: str | None) -> str | None:
    return {"query": "RETRIEVAL_QUERY", "passage": "RETRIEVAL_DOCUMENT"}.get(input_type or "")

"""The OpenAI shape: chat completions, and embeddings beside it. Spoken by most servers.

What differs from server to server stands in `openai_kinds.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import SseParser
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import dumped, items, json_object, json_value, obj, seconds, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.openai_kinds import ROWS
from inference_client.adapters.requests import bare_embeddings, given, message_json
from inference_client.adapters.scripted import MODEL, Answer, sse
from inference_client.errors import MalformedAnswer
from inference_client.servers import Server
from inference_client.sse import SseEvent
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
    input=("prompt_tokens", "input_tokens"),
    output=("completion_tokens", "output_tokens"),
    total=("total_tokens",),
    cache_read=(
        "prompt_tokens_details.cached_tokens",
        "prompt_token_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cache_read_input_tokens",
        "cached_tokens",
    ),
    cache_write=(
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.created_cache_tokens",
        "input_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
    ),
    reasoning=(
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "reasoning_tokens",
    ),
    detail={
        "cache_write_mid": ("input_tokens_details.cache_write_tokens_details.ttl_30m_tokens",),
        "cache_write_xlong": ("input_tokens_details.cache_write_tokens_details.ttl_12h_tokens",),
        "input_audio": ("prompt_tokens_details.audio_tokens",),
        "input_image": ("prompt_tokens_details.image_tokens",),
        "output_audio": ("completion_tokens_details.audio_tokens",),
        "rejected_prediction": ("completion_tokens_details.rejected_prediction_tokens",),
    },
)
EMBEDDINGS = UsageShape(input=("prompt_tokens", "input_tokens", "total_tokens"), output=())
_DONE = b"[DONE]"
_OPTIONS = ("temperature", "top_p", "seed", "tool_choice", "response_format")


class OpenAIChatParser(SseParser):
    """Reads chunks of `chat.completion.chunk`, and of the older `text_completion`."""

    shape = SHAPE

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._running = kind is not None and kind.running_usage
        self._calls: list[str | None] = []
        """The ids of the tool calls, by our number."""
        self._numbers: dict[int, int] = {}
        """The server's number of a tool call to ours."""

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        data = event.data
        if data.startswith(_DONE):
            self.ended = True
            return
        chunk = json_value(data)
        if not isinstance(chunk, dict):
            raise MalformedAnswer(code="not_an_object")
        self._on_message(chunk, event.name, out)

    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        chunk = message
        if name == "error" or "error" in chunk:
            self._failed(chunk)
        usage = chunk.get("usage")
        choices = chunk.get("choices")
        if choices and isinstance(choices, list) and isinstance(choices[0], dict):
            choice = choices[0]
            # Of several answers to one prompt the first one counts.
            if not choice.get("index"):
                delta = choice.get("delta")
                self._delta(delta if isinstance(delta, dict) else choice, out)
                # Moonshot and some gateways tell the numbers here.
                usage = usage or choice.get("usage")
                if choice.get("finish_reason"):
                    self.finish_raw = text_of(choice["finish_reason"]) or self.finish_raw
        elif chunk.get("object") == "error":
            self._fail(chunk)
        if self.served_model is None or self.upstream_id is None:
            self.served_model = text_of(chunk.get("model")) or self.served_model
            self.upstream_id = text_of(chunk.get("id")) or self.upstream_id
        if "timings" in chunk:
            self._timings(obj(chunk["timings"]))
        if usage:
            self._add_usage(usage)
        elif "x_groq" in chunk:
            self._groq(obj(chunk["x_groq"]))

    def _timings(self, timings: Mapping[str, Any]) -> None:
        """llama.cpp: with its last chunk, and with each where asked to, so that a reader who leaves is counted."""
        self.prefill_s = seconds(timings.get("prompt_ms"), per_second=1e3)
        read, known, written = (timings.get(name) for name in ("prompt_n", "cache_n", "predicted_n"))
        if type(read) is int and type(known) is int and type(written) is int:
            self._add_usage(
                {
                    "prompt_tokens": read + known,
                    "completion_tokens": written,
                    "prompt_tokens_details": {"cached_tokens": known},
                }
            )
            self.usage_is_running = True

    def _groq(self, extra: Mapping[str, Any]) -> None:
        self._add_usage(extra.get("usage"))
        if extra.get("error"):
            self._fail(extra)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error") or answer.get("object") == "error":
            self._failed(answer)
        choice = next((obj(choice) for choice in items(answer.get("choices"))), {})
        if choice:
            self._delta(obj(choice.get("message")) or choice, out)
            self.finish_raw = text_of(choice.get("finish_reason"))
        self.served_model = text_of(answer.get("model"))
        self.upstream_id = text_of(answer.get("id"))
        self._add_usage(answer.get("usage") or choice.get("usage"))

    def _failed(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error") or "choices" not in chunk:
            self._fail(chunk)

    def _add_usage(self, block: object) -> None:
        self.usage_is_running = self._running and isinstance(block, dict)
        super()._add_usage(block)

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
        number = self._number(call.get("index"), call_id, name)
        out.append(ToolCallDelta(number, call_id, name, dumped(arguments) if arguments else ""))

    def _number(self, index: object, call_id: str | None, name: str | None) -> int:
        """Our number of the tool call that a piece belongs to.

        Servers without an index send whole calls, so a new id or name begins a new one. So does another id with a
        name under an index that is taken: Ollama and Gemini give each of several calls the index 0.
        """
        if isinstance(index, int):
            known = self._numbers.get(index)
            if known is None or (call_id and name and self._calls[known] not in (None, call_id)):
                known = self._numbers[index] = len(self._calls)
                self._calls.append(call_id)
            return known
        if not self._calls or (name and call_id != self._calls[-1]) or (name and call_id is None):
            self._calls.append(call_id)
        return len(self._calls) - 1


class OpenAIChat(Adapter):
    """Requests and answers in the OpenAI shape."""

    name = "openai_chat"
    parsers = {"chat.completions": OpenAIChatParser, "completions": OpenAIChatParser}
    kinds = ROWS

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        body: dict[str, Any] = {**kind.extra_body, **request.extra}
        body |= {"model": request.model, "messages": [message_json(message) for message in request.messages]}
        body[kind.cap_field] = request.max_output_tokens
        body |= given(**{name: getattr(request, name) for name in _OPTIONS})
        body |= given(stop=list(request.stop) or None, tools=list(request.tools or ()) or None)
        body["stream"] = True
        if kind.asks_usage:
            running = {"continuous_usage_stats": True} if kind.running_usage else {}
            body["stream_options"] = {"include_usage": True, **running}
        return body

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors, as floats."""
        body: dict[str, Any] = {**request.extra, "model": request.model, "input": list(request.inputs)}
        body["encoding_format"] = kind.embed_encoding
        # What a text is for is a hint, which a server that does not know it can do without.
        hinted = kind.embed_keys is None or "input_type" in kind.embed_keys
        return body | given(input_type=request.input_type if hinted else None, dimensions=request.dimensions)

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`. Raises MalformedAnswer."""
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

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Chunks of `chat.completion.chunk`."""
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        numbers = _numbers(answer)

        def chunk(delta: Mapping[str, Any], finish: str | None, said: int) -> bytes:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            running = {"usage": {**numbers, "completion_tokens": said}} if answer.usage == "running" else {}
            return sse({**head, "choices": choices, **running})

        yield chunk({"role": "assistant", "content": ""}, None, 0)
        for said, word in enumerate(answer.words, 1):
            yield chunk({"content": word}, None, said)
        yield chunk({}, answer.finish, len(answer.words))
        if answer.usage != "none":
            for _ in range(2 if answer.usage == "twice" else 1):
                yield sse({**head, "choices": [], "usage": numbers})
        yield b"data: [DONE]\n\n"


ADAPTER = OpenAIChat()


def _numbers(answer: Answer) -> dict[str, Any]:
    inp, out = (0, 0) if answer.usage == "zero" else (answer.input_tokens, answer.output_tokens)
    numbers: dict[str, Any] = {"prompt_tokens": inp, "completion_tokens": out, "total_tokens": inp + out}
    if answer.cache_read:
        numbers["prompt_tokens_details"] = {"cached_tokens": answer.cache_read}
    return numbers

"""Routes that take one prompt instead of messages: TGI's `generate` and Triton's generate extension.

TGI turns messages into a prompt itself when asked to; Triton does not, so it needs a template. Triton's tensors
have the names the model gave them: a map says which of our fields goes where.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from inference_client.adapters.base import FirstStep, SseParser, WireRequest
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import json_object, obj, text_of
from inference_client.adapters.kinds import Kind, model_url, option, root_url
from inference_client.adapters.openai_chat import message_json
from inference_client.adapters.prompts import prompt_text
from inference_client.adapters.requests import given, post, refuse
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.sse import SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    Server,
    TextDelta,
    Usage,
)
from inference_client.usage import TGI, TRITON, number, usage_read

TENSORS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {
        "prompt": "text_input",
        # A JSON text, because Triton's own parameters hold no lists, and `stop` is one.
        "sampling": "sampling_parameters",
        "max_output_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "seed",
        "stop": "stop",
        "always": {
            "stream": True,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
            "return_finish_reason": True,
        },
    },
    "trtllm": {
        "prompt": "text_input",
        "max_output_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "random_seed",
        "stop": "stop_words",
        "always": {
            "stream": True,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
        },
    },
}
"""By backend: our field to the model's tensor, the tensor that takes all `sampling` as one text, and what is
`always` sent. A server's option `tensors` may be such a map."""
_SAMPLING = ("max_output_tokens", "temperature", "top_p", "seed", "stop")
_AS_THEY_ARE = ":@!$&'()*+,;="
"""What may stand in a path. Triton never decodes a model's name, so the name goes out as it is."""


class TgiParser(SseParser):
    """Reads `/generate_stream`: one event per token, numbers on the last one when `details` were asked for."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._details: dict[str, Any] = {}

    def on_headers(self, headers: Mapping[str, str]) -> None:
        """An answer that was not streamed has its input number in a header."""
        super().on_headers(headers)
        told = headers.get("x-prompt-tokens", "")
        if told.isascii() and told.isdigit():
            self._details["input_length"] = number(float(told))

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._details, TGI, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        message = json_object(event.data)
        if message.get("error"):
            self.error = self.error or from_value(message)
        token = obj(message.get("token"))
        text = text_of(token.get("text"))
        if text and token.get("special") is not True:
            out.append(TextDelta(text))
        self._take(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self.error = from_value(answer)
        if text := text_of(answer.get("generated_text")):
            out.append(TextDelta(text))
        self._take(answer)

    def _take(self, message: Mapping[str, Any]) -> None:
        details = message.get("details")
        if isinstance(details, dict):
            self._details |= {name: value for name, value in details.items() if value is not None}
            self.finish_raw = text_of(details.get("finish_reason"))
        if isinstance(message.get("generated_text"), str):
            self.ended = True


class TritonParser(SseParser):
    """Reads `/generate_stream` of Triton. Output numbers are per event and added, input numbers repeat.

    The vLLM backend writes Python's word `None` as the finish reason of every event but the last.
    """

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: dict[str, Any] = {}
        self._answered = False
        self._tells_reasons = False

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, TRITON, precount=precount)

    def _flush(self, out: list[Event]) -> None:
        super()._flush(out)
        # Many models tell no reason, and there is no end mark: then the proper end of the body is the end.
        self.ended = self.ended or (self._answered and not self._tells_reasons)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        self._whole(json_object(event.data), out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self.error = self.error or from_value(answer)
        if text := text_of(answer.get("text_output")):
            out.append(TextDelta(text))
        self.served_model = text_of(answer.get("model_name")) or self.served_model
        self._answered = self._answered or "text_output" in answer
        if reason := text_of(answer.get("finish_reason")):
            self._tells_reasons = True
            self.finish_raw = reason if reason != "None" else self.finish_raw
        inp, more = number(answer.get("num_input_tokens")), number(answer.get("num_output_tokens"))
        if inp is not None:
            self._usage["num_input_tokens"] = inp
        if more is not None:
            self.usage_is_running = True
            self._usage["num_output_tokens"] = self._usage.get("num_output_tokens", 0) + more


class _PromptAdapter:
    """What both have in common: no embeddings."""

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """These routes make no embeddings. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings here. Choose another server for them.")

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """These routes make no embeddings. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings here. Choose another server for them.")


class Tgi(_PromptAdapter):
    """Requests to `/generate_stream`. With the option `template` at `server`, `/chat_tokenize` writes the prompt."""

    name: ClassVar[str] = "tgi"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        template = option(server, kind, "template", request.model)
        url = root_url(server, kind.chat_path)
        body = {**request.extra, "parameters": _tgi_parameters(request)}
        if template != "server":
            body["inputs"] = prompt_text(request.messages, template)
            return post(server, kind, url, body, accept="text/event-stream")
        asked = {"messages": [message_json(message) for message in request.messages]}
        first = post(server, kind, root_url(server, "/chat_tokenize"), asked, accept="application/json")

        def complete(answer: bytes) -> bytes:
            text = json_object(answer).get("templated_text")
            if not isinstance(text, str):
                raise MalformedAnswer(code="no_templated_text")
            return orjson.dumps({**body, "inputs": text})

        wire = post(server, kind, url, body, accept="text/event-stream")
        return wire._replace(first=FirstStep(first, complete))

    def parser(self, kind: Kind) -> TgiParser:
        """A fresh parser for one answer."""
        return TgiParser(kind)


class Triton(_PromptAdapter):
    """Requests to `/v2/models/NAME/generate_stream`."""

    name: ClassVar[str] = "triton"

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        tensors = _tensors(option(server, kind, "tensors", request.model))
        sampling = _sampling(request, tensors)
        if name := tensors.get("sampling"):
            sampling = {name: orjson.dumps(sampling).decode()}
        template = option(server, kind, "template", request.model)
        prompt = {tensors["prompt"]: prompt_text(request.messages, template)}
        body = {**request.extra, **tensors.get("always", {}), **sampling, **prompt}
        url = model_url(server, kind, kind.chat_path, request.model, safe=_AS_THEY_ARE)
        return post(server, kind, url, body, accept="text/event-stream")

    def parser(self, kind: Kind) -> TritonParser:
        """A fresh parser for one answer."""
        return TritonParser(kind)


def _tgi_parameters(request: ChatRequest) -> dict[str, Any]:
    # TGI takes no temperature of 0 and no top_p of 1: both are what happens without the field.
    parameters = given(
        max_new_tokens=request.max_output_tokens,
        temperature=request.temperature or None,
        do_sample=True if request.temperature or request.top_p else None,
        top_p=request.top_p if request.top_p is not None and request.top_p < 1 else None,
        seed=request.seed,
        stop=list(request.stop) or None,
        grammar=_grammar(request.response_format),
    )
    own = {"details": True, "return_full_text": False}
    return {**obj(request.extra.get("parameters")), **own, **parameters}


def _grammar(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if wanted is None or wanted.get("type") == "text":
        return None
    return {"type": "json", "value": obj(wanted.get("json_schema")).get("schema") or {"type": "object"}}


def _tensors(said: object) -> Mapping[str, Any]:
    found = TENSORS.get(said) if isinstance(said, str) else said
    if not isinstance(found, Mapping) or "prompt" not in found:
        raise Unsupported(
            f"There is no tensor map called {said!r}. Known: {', '.join(TENSORS)}; or a map with the key prompt.",
            code="unknown_tensors",
        )
    return found


def _sampling(request: ChatRequest, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, by the model's names. A field the map does not name is refused, not dropped."""
    fields = given(**{name: getattr(request, name) for name in _SAMPLING})
    fields["stop"] = list(request.stop)
    wanted = {name: value for name, value in fields.items() if value != []}
    if missing := sorted(set(wanted) - set(tensors)):
        raise Unsupported(
            f"This model's tensor map has no place for {', '.join(missing)}. Leave it out, or complete the map.",
            code="unsupported_option",
        )
    return {tensors[name]: value for name, value in wanted.items()}

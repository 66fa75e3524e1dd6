"""Text Generation Inference by its own route, `generate`, which takes one prompt instead of messages.

It turns messages into a prompt itself when asked to.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.addresses import option, root_url
from inference_client.adapters.base import SseParser
from inference_client.adapters.counts import TGI as COUNTS
from inference_client.adapters.json_tools import json_object, obj, text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.prompts import prompt_text
from inference_client.adapters.requests import given, message_json, post
from inference_client.adapters.scripted import Answer, sse
from inference_client.adapters.wire import FirstStep, WireRequest
from inference_client.errors import MalformedAnswer
from inference_client.servers import Server
from inference_client.types import ChatRequest, Event, TextDelta
from inference_client.usage import UsageShape


class TgiParser(SseParser):
    """Reads `/generate_stream`: one event per token, numbers on the last one when `details` were asked for."""

    shape = UsageShape(input=("input_length",), output=("generated_tokens",))

    def on_headers(self, headers: Mapping[str, str]) -> None:
        """An answer that was not streamed has its input number in a header."""
        super().on_headers(headers)
        told = headers.get("x-prompt-tokens", "")
        if told.isascii() and told.isdigit():
            self._add_usage({"input_length": float(told)})

    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        if message.get("error"):
            self._fail(message)
        token = obj(message.get("token"))
        text = text_of(token.get("text"))
        if text and token.get("special") is not True:
            out.append(TextDelta(text))
        self._take(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self._fail(answer)
        if text := text_of(answer.get("generated_text")):
            out.append(TextDelta(text))
        self._take(answer)

    def _take(self, message: Mapping[str, Any]) -> None:
        details = message.get("details")
        if isinstance(details, dict):
            self._add_usage(details)
            self.finish_raw = text_of(details.get("finish_reason"))
        if isinstance(message.get("generated_text"), str):
            self.ended = True


class Tgi(Adapter):
    """Requests to `/generate_stream`. With the option `template` at `server`, `/chat_tokenize` writes the prompt."""

    name = "tgi"
    parsers = {"generate_stream": TgiParser, "generate": TgiParser}
    kinds = (
        Kind(
            name="tgi-native",
            title="Text Generation Inference, own routes",
            aliases=("huggingface-tgi",),
            grade="recorded",
            version_path=None,
            chat_path="/generate_stream",
            embed_path=None,
            models_path="/v1/models",
            max_stop=4,
            refuses=frozenset({"tools", "tool_choice"}),
            images=None,
            options={"template": "server"},
            health_path="/health",
            metrics_path="/metrics",
            counts=COUNTS,
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer, without the prompt where the server is to write it."""
        template = option(server, kind, "template", request.model)
        body = {**request.extra, "parameters": _parameters(request)}
        return body if template == "server" else {**body, "inputs": prompt_text(request.messages, template)}

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer, and a question before it. Raises Unsupported."""
        wire = super().chat_request(server, kind, request)
        if option(server, kind, "template", request.model) != "server":
            return wire
        asked = {"messages": [message_json(message) for message in request.messages]}
        first = post(server, kind, root_url(server, "/chat_tokenize"), asked, accept="application/json")

        def complete(answer: bytes) -> bytes:
            text = json_object(answer).get("templated_text")
            if not isinstance(text, str):
                raise MalformedAnswer(code="no_templated_text")
            return orjson.dumps({**json_object(wire.body), "inputs": text})

        return wire._replace(first=FirstStep(first, complete))

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Events of `/generate_stream`, one for each token; the numbers stand on the last one."""
        told = {"generated_tokens": answer.output_tokens, "input_length": answer.input_tokens, "seed": None}
        reason = {"finish_reason": "eos_token" if answer.finish == "stop" else "length"}
        last = {**reason, **(told if answer.usage != "none" else {})}
        for place, word in enumerate(answer.words, 1):
            at_end = place == len(answer.words)
            yield sse(
                {
                    "index": place,
                    "token": {"id": place, "text": word, "logprob": 0.0, "special": False},
                    "generated_text": "".join(answer.words) if at_end else None,
                    "details": last if at_end else None,
                }
            )


ADAPTER = Tgi()


def _parameters(request: ChatRequest) -> dict[str, Any]:
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

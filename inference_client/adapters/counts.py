"""Asking a server how many tokens a prompt has. No IO, and it costs nothing.

The prompt is the one the call itself would send, so what the server counts is what it will bill.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.addresses import model_url, root_url
from inference_client.adapters.json_tools import items, json_object, text_of
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.requests import given, message_json, post, refuse
from inference_client.adapters.wire import FirstStep, WireRequest
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.servers import Server
from inference_client.types import ChatRequest, Message, TextPart
from inference_client.usage import number


def count_request(adapter: Adapter, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
    """The question. Raises Unsupported where this kind counts nothing, and as a call would."""
    if kind.counts is None:
        raise Unsupported(f"{kind.title} does not count tokens for others.", code="no_count")
    url = model_url(server, kind, kind.counts.path, request.model)
    return kind.counts.ask(adapter, server, kind, request, url)


def count_read(body: bytes) -> int:
    """The number in the answer. Raises MalformedAnswer."""
    answer = json_object(body)
    for name in ("count", "input_tokens", "totalTokens", "inputTokens"):
        if (found := number(answer.get(name))) is not None:
            return found
    for name in ("tokens", "tokenize_response"):
        if isinstance(answer.get(name), list):
            return len(items(answer[name]))
    raise MalformedAnswer(code="no_count")


def as_sent(
    *names: str, wrapped: Callable[[ChatRequest, dict[str, Any]], dict[str, Any]] | None = None
) -> Callable[[Adapter, Server, Kind, ChatRequest, str], WireRequest]:
    """A way to ask: the fields `names` of what the call would send, `wrapped` where the route wants that."""

    def ask(adapter: Adapter, server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
        refuse(kind, request)
        sent = adapter.chat_body(server, kind, request)
        body = {name: sent[name] for name in names if name in sent}
        return post(server, kind, url, wrapped(request, body) if wrapped else body)

    return ask


def _ask_vllm(adapter: Adapter, server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    body = {"model": request.model, **_texts(request), "add_generation_prompt": True}
    return post(server, kind, url, {**body, **_template_options(request)})


def _ask_llamacpp(
    adapter: Adapter, server: Server, kind: Kind, request: ChatRequest, url: str
) -> WireRequest:
    asked = {**_texts(request), **_template_options(request)}
    first = post(server, kind, root_url(server, "/apply-template"), asked)

    def complete(answer: bytes) -> bytes:
        prompt = text_of(json_object(answer).get("prompt"))
        if prompt is None:
            raise MalformedAnswer(code="no_prompt")
        # As the server does with a chat: its own marks count as what they are.
        return orjson.dumps({"content": prompt, "add_special": True, "parse_special": True})

    return post(server, kind, url, {})._replace(first=FirstStep(first, complete))


def _ask_tgi(adapter: Adapter, server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    return post(server, kind, url, _texts(request))


VLLM = Counting(path="/tokenize", ask=_ask_vllm, text_only=True)
LLAMACPP = Counting(path="/tokenize", ask=_ask_llamacpp, text_only=True)
TGI = Counting(path="/chat_tokenize", ask=_ask_tgi, text_only=True)


def _texts(request: ChatRequest) -> dict[str, Any]:
    messages = [message_json(_without_pictures(message)) for message in request.messages]
    return {"messages": messages, **given(tools=list(request.tools or ()) or None)}


def _template_options(request: ChatRequest) -> dict[str, Any]:
    return given(chat_template_kwargs=request.extra.get("chat_template_kwargs"))


def _without_pictures(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    return replace(message, content=tuple(part for part in message.content if isinstance(part, TextPart)))

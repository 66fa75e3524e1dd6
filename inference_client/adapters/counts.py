"""Asking a server how many tokens a prompt has. No IO, and it costs nothing.

The prompt is the one the call itself would send, so what the server counts is what it will bill.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from inference_client.adapters import adapter_for
from inference_client.adapters.base import FirstStep, WireRequest
from inference_client.adapters.json_tools import items, json_object, text_of
from inference_client.adapters.kind import Counting
from inference_client.adapters.kinds import Kind, model_url, root_url
from inference_client.adapters.openai_chat import message_json
from inference_client.adapters.requests import given, post
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.types import ChatRequest, Message, Server, TextPart
from inference_client.usage import number

ERROR_PCT: Mapping[Counting, float] = {
    "vllm": 0.0,
    "llamacpp": 0.0,
    "tgi": 0.0,
    "responses": 0.0,
    "gemini": 1.0,
    "anthropic": 5.0,
    "bedrock": 5.0,
}
"""How far the count may be off from the bill; makers call theirs an estimate, the others run the template."""
TEXT_ONLY: frozenset[Counting] = frozenset({"vllm", "llamacpp", "tgi"})
"""These count the text of a prompt; pictures must be added."""
_PICKED: Mapping[Counting, tuple[str, ...]] = {
    "anthropic": ("model", "messages", "system", "tools", "tool_choice", "thinking"),
    "gemini": ("contents", "systemInstruction", "tools", "toolConfig"),
    "bedrock": ("messages", "system", "toolConfig"),
    "responses": ("model", "input", "tools", "tool_choice", "text", "reasoning"),
}


def count_request(server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
    """The question. Raises Unsupported where this kind counts nothing, and as a call would."""
    if kind.counts_as is None or kind.counts_by is None:
        raise Unsupported(f"{kind.title} does not count tokens for others.", code="no_count")
    url = model_url(server, kind, kind.counts_by, request.model)
    return _ASKED[kind.counts_as](server, kind, request, url)


def count_read(kind: Kind, body: bytes) -> int:
    """The number in the answer. Raises MalformedAnswer."""
    answer = json_object(body)
    for name in ("count", "input_tokens", "totalTokens", "inputTokens"):
        if (found := number(answer.get(name))) is not None:
            return found
    for name in ("tokens", "tokenize_response"):
        if isinstance(answer.get(name), list):
            return len(items(answer[name]))
    raise MalformedAnswer(code="no_count")


def _openai(request: ChatRequest) -> dict[str, Any]:
    messages = [message_json(_without_pictures(message)) for message in request.messages]
    return {"messages": messages, **given(tools=list(request.tools or ()) or None)}


def _vllm(server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    body = {"model": request.model, **_openai(request), "add_generation_prompt": True}
    return post(server, kind, url, {**body, **_template_options(request)})


def _llamacpp(server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    asked = {**_openai(request), **_template_options(request)}
    first = post(server, kind, root_url(server, "/apply-template"), asked)

    def complete(answer: bytes) -> bytes:
        prompt = text_of(json_object(answer).get("prompt"))
        if prompt is None:
            raise MalformedAnswer(code="no_prompt")
        # As the server does with a chat: its own marks count as what they are.
        return orjson.dumps({"content": prompt, "add_special": True, "parse_special": True})

    return post(server, kind, url, {})._replace(first=FirstStep(first, complete))


def _tgi(server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    return post(server, kind, url, _openai(request))


def _as_sent(server: Server, kind: Kind, request: ChatRequest, url: str) -> WireRequest:
    sent = orjson.loads(adapter_for(kind).chat_request(server, kind, request).body)
    assert kind.counts_as is not None
    body = {name: sent[name] for name in _PICKED[kind.counts_as] if name in sent}
    if kind.counts_as == "gemini":
        body = {"generateContentRequest": {"model": f"models/{request.model}", **body}}
    elif kind.counts_as == "bedrock":
        body = {"input": {"converse": body}}
    wire = post(server, kind, url, body)
    if kind.counts_as == "anthropic":
        wire.headers.setdefault("anthropic-version", "2023-06-01")
    return wire


_ASKED: Mapping[Counting, Callable[[Server, Kind, ChatRequest, str], WireRequest]] = {
    "vllm": _vllm,
    "llamacpp": _llamacpp,
    "tgi": _tgi,
    "anthropic": _as_sent,
    "gemini": _as_sent,
    "bedrock": _as_sent,
    "responses": _as_sent,
}


def _template_options(request: ChatRequest) -> dict[str, Any]:
    options = request.extra.get("chat_template_kwargs")
    return given(chat_template_kwargs=options)


def _without_pictures(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    return replace(message, content=tuple(part for part in message.content if isinstance(part, TextPart)))

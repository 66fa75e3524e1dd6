"""Amazon Bedrock: Converse for chat, Invoke for embeddings.

It is sent with a Bedrock API key (bearer) or signed with AWS access keys (see `sigv4.py`). The numbers stand in
the `metadata` frame, after `messageStop`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.bedrock_answers import ConverseParser, InvokeParser
from inference_client.adapters.bedrock_embeddings import batch_of, body_of, vectors_in
from inference_client.adapters.counts import as_sent
from inference_client.adapters.json_tools import obj
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.requests import (
    arguments_of,
    blocks,
    encoded,
    functions,
    given,
    plain,
    schema_of,
    system_text,
    turns,
)
from inference_client.adapters.scripted import Answer
from inference_client.eventstream import frame_bytes
from inference_client.servers import Server
from inference_client.types import ChatRequest, Embeddings, EmbedRequest, Message

_BEDROCK = Kind(
    name="bedrock",
    title="Amazon Bedrock, with an API key",
    grade="recorded",
    version_path=None,
    chat_path="/model/{model}/converse-stream",
    embed_path="/model/{model}/invoke",
    models_path=None,
    refuses=frozenset({"seed", "response_format"}),
    images="bedrock",
    counts=Counting(
        path="/model/{model}/count-tokens",
        ask=as_sent(
            "messages", "system", "toolConfig", wrapped=lambda request, body: {"input": {"converse": body}}
        ),
        error_pct=5.0,
    ),
    leaves_premises=True,
    abort_stops_billing=False,
)


class Bedrock(Adapter):
    """Requests to ConverseStream, and to InvokeModel for embeddings."""

    name = "bedrock"
    content_type = "application/vnd.amazon.eventstream"
    parsers = {
        "converse-stream": ConverseParser,
        "converse": ConverseParser,
        "invoke": InvokeParser,
        "invoke-with-response-stream": InvokeParser,
    }
    kinds = (
        _BEDROCK,
        replace(
            _BEDROCK,
            name="bedrock-sigv4",
            title="Amazon Bedrock, with AWS access keys",
            grade="documented",
            auth="sigv4",
            options={"region": None},
        ),
    )

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer."""
        said = turns(request.messages, content=_content, result=_result)
        body: dict[str, Any] = {
            **request.extra,
            "messages": [{"role": role, "content": content} for role, content in said],
            "inferenceConfig": given(
                maxTokens=request.max_output_tokens,
                temperature=request.temperature,
                topP=request.top_p,
                stopSequences=list(request.stop) or None,
            ),
        }
        system = system_text(request.messages)
        if system:
            body["system"] = [{"text": system}]
        if request.tools and request.tool_choice != "none":
            body["toolConfig"] = {"tools": [_tool(function) for function in functions(request)]}
            if request.tool_choice is not None:
                body["toolConfig"]["toolChoice"] = _choice(request.tool_choice)
        return body

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors, in the words of the model's maker. Raises Unsupported."""
        return body_of(request)

    def embed_batch(self, kind: Kind, model: str) -> int | None:
        """Titan takes one text per request."""
        return batch_of(model)

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`; not every maker tells the tokens there, but the headers do."""
        return vectors_in(body, count, headers or {})

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Frames of ConverseStream; the numbers come after `messageStop`."""
        yield _frame("messageStart", {"role": "assistant"})
        for word in answer.words:
            yield _frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": word}})
        yield _frame("contentBlockStop", {"contentBlockIndex": 0})
        yield _frame("messageStop", {"stopReason": "end_turn" if answer.finish == "stop" else "max_tokens"})
        numbers = {
            "inputTokens": answer.input_tokens - answer.cache_read,
            "cacheReadInputTokens": answer.cache_read,
            "outputTokens": answer.output_tokens,
            "totalTokens": answer.input_tokens + answer.output_tokens,
        }
        yield _frame("metadata", {"usage": numbers} if answer.usage != "none" else {})


ADAPTER = Bedrock()


def _content(message: Message) -> list[Any]:
    return blocks(
        message,
        text=lambda text: {"text": text},
        picture=lambda part: {
            "image": {"format": part.media_type.rpartition("/")[2], "source": {"bytes": encoded(part)}}
        },
        call=lambda call: {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments_of(call)}},
    )


def _result(message: Message) -> dict[str, Any]:
    content = [{"text": plain(message)}]
    return {"toolResult": {"toolUseId": message.tool_call_id or "", "content": content}}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    name, told = function.get("name"), function.get("description")
    return {"toolSpec": given(name=name, description=told, inputSchema={"json": schema_of(function)})}


def _choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"any" if choice == "required" else "auto": {}}
    return {"tool": {"name": obj(choice.get("function")).get("name")}}


def _frame(name: str, payload: Mapping[str, Any]) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame_bytes(headers, orjson.dumps(payload))

"""Answers in every wire format, made from a list of words and a few numbers. No IO."""

import base64
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

from inference_client.eventstream import frame_bytes

UsageMode: TypeAlias = Literal["right", "none", "zero", "wrong", "twice", "running"]

MODEL = "scripted"
SSE = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is to be said, whatever the wire format."""

    words: Sequence[str]
    input_tokens: int = 11
    cache_read: int = 0
    """Part of `input_tokens`."""
    usage: UsageMode = "right"
    finish: Literal["stop", "length"] = "stop"

    @property
    def output_tokens(self) -> int:
        """One per word; a wrong usage block says a thousand more."""
        return len(self.words) + (1000 if self.usage == "wrong" else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One wire format: its routes end in one of `paths`, and begin with `root`."""

    name: str
    paths: tuple[str, ...]
    content_type: str
    pieces: Callable[[Answer], Iterator[bytes]]
    root: str = ""


def openai_pieces(answer: Answer) -> Iterator[bytes]:
    """Chunks of `chat.completion.chunk`."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    numbers = _openai_usage(answer)

    def chunk(delta: Mapping[str, Any], finish: str | None, said: int) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        running = {"usage": {**numbers, "completion_tokens": said}} if answer.usage == "running" else {}
        return _sse({**head, "choices": choices, **running})

    yield chunk({"role": "assistant", "content": ""}, None, 0)
    for number, word in enumerate(answer.words, 1):
        yield chunk({"content": word}, None, number)
    yield chunk({}, answer.finish, len(answer.words))
    if answer.usage != "none":
        for _ in range(2 if answer.usage == "twice" else 1):
            yield _sse({**head, "choices": [], "usage": numbers})
    yield b"data: [DONE]\n\n"


def anthropic_pieces(answer: Answer) -> Iterator[bytes]:
    """Events of a message. Without usage there is still the empty block that the format requires."""
    told = answer.usage != "none"
    fresh = 0 if answer.usage == "zero" else answer.input_tokens - answer.cache_read
    start = {"input_tokens": fresh, "cache_read_input_tokens": answer.cache_read, "output_tokens": 1}
    last = {"output_tokens": 0 if answer.usage == "zero" else answer.output_tokens}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": start if told else {}}}
    ]
    events.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    events.append({"type": "ping"})
    events += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in answer.words
    ]
    events.append({"type": "content_block_stop", "index": 0})
    reason = "end_turn" if answer.finish == "stop" else "max_tokens"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": last if told else {}})
    events.append({"type": "message_stop"})
    for event in events:
        yield _sse(event, event["type"])


def ollama_pieces(answer: Answer) -> Iterator[bytes]:
    """Lines of `/api/chat`."""
    for word in answer.words:
        yield _line({"model": MODEL, "message": {"role": "assistant", "content": word}, "done": False})
    last: dict[str, Any] = {"model": MODEL, "message": {"role": "assistant", "content": ""}, "done": True}
    last["done_reason"] = answer.finish
    if answer.usage not in ("none", "zero"):
        last |= {"prompt_eval_count": answer.input_tokens, "eval_count": answer.output_tokens}
    yield _line(last)


def gemini_pieces(answer: Answer) -> Iterator[bytes]:
    """Chunks of `streamGenerateContent?alt=sse`, each with the numbers so far."""
    for number, word in enumerate(answer.words, 1):
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": [{"text": word}]}}
        last = number == len(answer.words)
        if last:
            candidate["finishReason"] = "STOP" if answer.finish == "stop" else "MAX_TOKENS"
        chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": MODEL, "responseId": "g-1"}
        if answer.usage != "none":
            output = answer.output_tokens if last else number
            chunk["usageMetadata"] = {
                "promptTokenCount": answer.input_tokens,
                "cachedContentTokenCount": answer.cache_read,
                "candidatesTokenCount": output,
                "totalTokenCount": answer.input_tokens + output,
            }
        yield _sse(chunk)


def responses_pieces(answer: Answer) -> Iterator[bytes]:
    """Typed events of the Responses route."""
    shell = {"id": "resp_1", "object": "response", "model": MODEL}
    yield _typed({"type": "response.created", "response": {**shell, "status": "in_progress", "usage": None}})
    for word in answer.words:
        yield _typed({"type": "response.output_text.delta", "output_index": 0, "delta": word})
    done = answer.finish == "stop"
    numbers = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cache_read},
        "output_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    response = {
        **shell,
        "status": "completed" if done else "incomplete",
        "incomplete_details": None if done else {"reason": "max_output_tokens"},
        "usage": None if answer.usage == "none" else numbers,
    }
    yield _typed({"type": f"response.{response['status']}", "response": response})


def bedrock_pieces(answer: Answer) -> Iterator[bytes]:
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


def cohere_pieces(answer: Answer) -> Iterator[bytes]:
    """Events of `/v2/chat`."""
    yield _typed({"type": "message-start", "id": "co-1", "delta": {"message": {"role": "assistant"}}})
    for word in answer.words:
        content = {"message": {"content": {"text": word}}}
        yield _typed({"type": "content-delta", "index": 0, "delta": content})
    tokens = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    reason = "COMPLETE" if answer.finish == "stop" else "MAX_TOKENS"
    told = {} if answer.usage == "none" else {"usage": {"tokens": tokens, "cached_tokens": answer.cache_read}}
    yield _typed({"type": "message-end", "delta": {"finish_reason": reason, **told}})


def tgi_pieces(answer: Answer) -> Iterator[bytes]:
    """Events of `/generate_stream`, one for each token; the numbers stand on the last one."""
    told = {"generated_tokens": answer.output_tokens, "input_length": answer.input_tokens, "seed": None}
    reason = {"finish_reason": "eos_token" if answer.finish == "stop" else "length"}
    last = {**reason, **(told if answer.usage != "none" else {})}
    for number, word in enumerate(answer.words, 1):
        at_end = number == len(answer.words)
        yield _sse(
            {
                "index": number,
                "token": {"id": number, "text": word, "logprob": 0.0, "special": False},
                "generated_text": "".join(answer.words) if at_end else None,
                "details": last if at_end else None,
            }
        )


def triton_pieces(answer: Answer) -> Iterator[bytes]:
    """Responses of the generate extension; each says how many tokens it adds."""
    extra = answer.output_tokens - len(answer.words)
    for number, word in enumerate(answer.words, 1):
        last = number == len(answer.words)
        told = {"num_input_tokens": answer.input_tokens, "num_output_tokens": 1 + (extra if last else 0)}
        row = {"model_name": MODEL, "model_version": "1", "text_output": word}
        reason = {"finish_reason": answer.finish if last else "None"}
        yield _sse({**row, **(told if answer.usage != "none" else {}), **reason})


DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="openai", paths=("/chat/completions",), content_type=SSE, pieces=openai_pieces),
        Dialect(name="anthropic", paths=("/messages",), content_type=SSE, pieces=anthropic_pieces),
        Dialect(
            name="ollama", paths=("/api/chat",), content_type="application/x-ndjson", pieces=ollama_pieces
        ),
        Dialect(name="gemini", paths=(":streamGenerateContent",), content_type=SSE, pieces=gemini_pieces),
        Dialect(name="responses", paths=("/responses",), content_type=SSE, pieces=responses_pieces),
        Dialect(
            name="bedrock",
            paths=("/converse-stream",),
            content_type="application/vnd.amazon.eventstream",
            pieces=bedrock_pieces,
        ),
        Dialect(name="cohere", paths=("/v2/chat",), content_type=SSE, pieces=cohere_pieces),
        Dialect(
            name="triton",
            root="/v2/models/",
            paths=("/generate_stream",),
            content_type=SSE,
            pieces=triton_pieces,
        ),
        Dialect(name="tgi", paths=("/generate_stream",), content_type=SSE, pieces=tgi_pieces),
    )
}


def dialect_of(path: str) -> Dialect | None:
    """The dialect of the route at `path`."""
    bare = path.partition("?")[0]
    return next(
        (found for found in DIALECTS.values() if bare.endswith(found.paths) and bare.startswith(found.root)),
        None,
    )


def embeddings_body(texts: Sequence[str], dimensions: int = 4, *, packed: bool = False) -> bytes:
    """An answer in the OpenAI shape: each vector holds the length of its text."""
    rows = []
    for index, text in enumerate(texts):
        numbers = [float(len(text))] * dimensions
        packed_numbers = base64.b64encode(b"".join(_float(number) for number in numbers)).decode()
        rows.append(
            {"object": "embedding", "index": index, "embedding": packed_numbers if packed else numbers}
        )
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps({"object": "list", "model": MODEL, "data": rows, "usage": usage})


def _openai_usage(answer: Answer) -> dict[str, Any]:
    inp, out = (0, 0) if answer.usage == "zero" else (answer.input_tokens, answer.output_tokens)
    numbers: dict[str, Any] = {"prompt_tokens": inp, "completion_tokens": out, "total_tokens": inp + out}
    if answer.cache_read:
        numbers["prompt_tokens_details"] = {"cached_tokens": answer.cache_read}
    return numbers


def _float(number: float) -> bytes:
    return struct.pack("<f", number)


def _sse(value: Mapping[str, Any], name: str | None = None) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


def _typed(value: Mapping[str, Any]) -> bytes:
    return _sse(value, value["type"])


def _line(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"


def _frame(name: str, payload: Mapping[str, Any]) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame_bytes(headers, orjson.dumps(payload))

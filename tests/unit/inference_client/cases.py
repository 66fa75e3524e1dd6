"""One answer and what it holds, and pieces to make answers of."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from inference_client.eventstream import frame_bytes

Usage = tuple[int | None, int | None, int | None, int | None, int | None]
"""input, output, cache read, cache write, reasoning."""


@dataclass(frozen=True)
class Case:
    """A body and what it holds. `whole` bodies are one JSON value."""

    name: str
    provider: str
    api: str
    body: Any
    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    calls: tuple[tuple[str, str], ...] = ()
    reasoning: str = ""
    error: str | None = None
    whole: bool = False
    detail: dict[str, int] = field(default_factory=dict)


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(index: int | None, ident: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {**place, "id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def typed(*events: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n" for event in events
    )


def frames(*events: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        frame_bytes({":event-type": name, ":message-type": "event"}, orjson.dumps(value))
        for name, value in events
    )


BOTH = (("a", '{"x":1}'), ("b", '{"y":2}'))

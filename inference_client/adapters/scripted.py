"""What an adapter needs to say how a server of its dialect answers: for tests, the fault server and benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

UsageMode: TypeAlias = Literal["right", "none", "zero", "wrong", "twice", "running"]

MODEL = "scripted"
"""The name of the model that answers, where the dialect tells one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is to be said, whatever the wire format."""

    words: Sequence[str]
    input_tokens: int = 11
    cache_read: int = 0
    """Part of `input_tokens`."""
    usage: UsageMode = "right"
    """`none` must be heard by every dialect; `zero`, `twice` and `running` by those that know such a thing."""
    finish: Literal["stop", "length"] = "stop"

    @property
    def output_tokens(self) -> int:
        """One per word; a wrong usage block says a thousand more."""
        return len(self.words) + (1000 if self.usage == "wrong" else 0)


def sse(value: Mapping[str, Any], name: str | None = None) -> bytes:
    """A server-sent event that holds `value` as JSON."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


def typed(value: Mapping[str, Any]) -> bytes:
    """A server-sent event that is called after the `type` it holds."""
    return sse(value, value["type"])


def line(value: Mapping[str, Any]) -> bytes:
    """A line of JSON."""
    return orjson.dumps(value) + b"\n"

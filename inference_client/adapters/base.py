"""What every wire format has in common. To add one: a Parser, an Adapter, a row in `kinds.py`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, Protocol

from inference_client.adapters.json_tools import json_object, json_objects
from inference_client.adapters.kinds import Kind
from inference_client.errors import InferenceError, MalformedAnswer
from inference_client.sse import LineSplitter, SseDecoder, SseEvent
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    FinishReason,
    Server,
    Usage,
)

FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "complete": "stop",
    "completed": "stop",
    "finish": "stop",
    "length": "length",
    "limit": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "error": "error",
    "error_toxic": "content_filter",
}
"""Every server's words (in lower case) for why an answer ended."""


class WireRequest(NamedTuple):
    """A request ready to be sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    first: "FirstStep | None" = None
    """Something to ask before, where the server itself must turn messages into a prompt."""


class FirstStep(NamedTuple):
    """A request whose answer completes the next one. It calls no model, so it costs nothing."""

    request: WireRequest
    body: Callable[[bytes], bytes]
    """From the answer's body the body of the next request. Raises MalformedAnswer."""


_ID_HEADERS = ("x-generation-id", "x-amzn-requestid", "request-id", "apim-request-id", "x-request-id")


class Parser(ABC):
    """Reads one answer. Feed it the body as it comes; ask its attributes at any moment.

    Nothing here raises. An error the server reports inside the answer is kept in `error`, because the usage
    block may still follow it; an answer that cannot be read further also sets `broken`.
    """

    def __init__(self) -> None:
        self.finish_raw: str | None = None
        self.served_model: str | None = None
        self.upstream_id: str | None = None
        self.error: InferenceError | None = None
        self.broken = False
        self.usage_is_running = False
        """The usage told so far covers everything received so far."""
        self.ended = False
        """The answer's own end mark was seen (a finish reason alone is enough where there is no mark)."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """`finish_raw` in our words."""
        return FINISH.get(self.finish_raw.lower(), "other") if self.finish_raw else None

    @property
    def complete(self) -> bool:
        """Whether the body may end here without anything missing from the answer itself."""
        return self.ended or self.finish_raw is not None

    def on_headers(self, headers: Mapping[str, str]) -> None:
        """Take what the headers (in lower case) tell: an id by which the provider finds a call that broke off."""
        self.upstream_id = self.upstream_id or next(
            (found for name in _ID_HEADERS if (found := headers.get(name))), None
        )

    def feed(self, data: bytes) -> list[Event]:
        """The events completed by `data`; those before an unreadable place are not lost."""
        out: list[Event] = []
        if not self.broken:
            try:
                self._feed(data, out)
            except MalformedAnswer as exc:
                self._give_up(exc)
        return out

    def flush(self) -> list[Event]:
        """The events that only the end of the body completes."""
        out: list[Event] = []
        if not self.broken:
            # A body cut in the middle of an event is broken off, which `complete` tells; not malformed.
            with suppress(MalformedAnswer):
                self._flush(out)
        return out

    def whole(self, body: bytes) -> list[Event]:
        """The events of an answer that was not streamed."""
        out: list[Event] = []
        try:
            for answer in json_objects(body):
                self._whole(answer, out)
        except MalformedAnswer as exc:
            self._give_up(exc)
        self.ended = True
        return out

    @abstractmethod
    def usage(self, precount: int | None = None) -> Usage:
        """The usage told so far; `precount` is our own count of the input, where there is one."""

    @abstractmethod
    def _feed(self, data: bytes, out: list[Event]) -> None: ...

    @abstractmethod
    def _flush(self, out: list[Event]) -> None: ...

    @abstractmethod
    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None: ...

    def _give_up(self, exc: MalformedAnswer) -> None:
        self.broken = True
        self.error = self.error or exc


class SseParser(Parser):
    """A Parser over server-sent events."""

    def __init__(self) -> None:
        super().__init__()
        self._sse = SseDecoder()

    @abstractmethod
    def _on_event(self, event: SseEvent, out: list[Event]) -> None: ...

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for event in self._sse.feed(data):
            self._on_event(event, out)

    def _flush(self, out: list[Event]) -> None:
        for event in self._sse.flush():
            self._on_event(event, out)


class LinesParser(Parser):
    """A Parser over lines of JSON."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = LineSplitter()

    @abstractmethod
    def _on_object(self, line: Mapping[str, Any], out: list[Event]) -> None: ...

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for line in self._lines.feed(data):
            if line.strip():
                self._on_object(json_object(line), out)

    def _flush(self, out: list[Event]) -> None:
        line = self._lines.flush()
        if line.strip():
            self._on_object(json_object(line), out)


class Adapter(Protocol):
    """One wire format."""

    name: ClassVar[str]

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""

    def parser(self, kind: Kind) -> Parser:
        """A fresh Parser for one answer."""

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors. Raises Unsupported."""

    def embeddings(self, body: bytes, kind: Kind, count: int) -> Embeddings:
        """The vectors in `body`, `count` of them, without timing. Raises MalformedAnswer."""

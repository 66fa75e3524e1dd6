"""How answers are read, whatever the wire format: events, lines or frames in, our events and usage out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import json_object, json_objects, text_of
from inference_client.adapters.kind import Kind
from inference_client.errors import InferenceError, MalformedAnswer
from inference_client.eventstream import EventStreamDecoder, Frame
from inference_client.sse import LineSplitter, SseDecoder, SseEvent
from inference_client.types import Event, FinishReason, Usage
from inference_client.usage import UsageShape, first, merged, usage_read

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


_ID_HEADERS = ("x-generation-id", "x-amzn-requestid", "request-id", "apim-request-id", "x-request-id")


class Parser(ABC):
    """Reads one answer. Feed it the body as it comes; ask its attributes at any moment.

    Nothing here raises. An error the server reports inside the answer is kept in `error`, because the usage
    block may still follow it; an answer that cannot be read further also sets `broken`.
    """

    shape: ClassVar[UsageShape]
    """Where this format keeps its numbers. Its convention is what bills people right, or twice."""

    def __init__(self, kind: Kind | None = None) -> None:
        self.finish_raw: str | None = None
        self.served_model: str | None = None
        self.upstream_id: str | None = None
        self.error: InferenceError | None = None
        self.broken = False
        self.usage_is_running = False
        """The usage told so far covers everything received so far."""
        self.ended = False
        """The answer's own end mark was seen (a finish reason alone is enough where there is no mark)."""
        self.prefill_s: float | None = None
        """Seconds the server says it read the prompt."""
        self.load_s: float | None = None
        """Seconds it says it loaded the model for this call."""
        self._usage: dict[str, Any] | None = None

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

    def usage(self, precount: int | None = None) -> Usage:
        """The usage told so far; `precount` is our own count of the input, where there is one."""
        return usage_read(self._usage, self.shape, precount=precount)

    @property
    def usage_is_told(self) -> bool:
        """Whether a number of tokens is there: less to find out than all of `usage`."""
        told = self._usage or {}
        return any(first(told, paths) for paths in (self.shape.input, self.shape.output))

    @abstractmethod
    def _feed(self, data: bytes, out: list[Event]) -> None: ...

    @abstractmethod
    def _flush(self, out: list[Event]) -> None: ...

    @abstractmethod
    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None: ...

    def _add_usage(self, block: object) -> None:
        """Numbers are running totals wherever they come more than once: the last told counts, field by field."""
        if isinstance(block, dict):
            self._usage = merged(self._usage, block)

    def _fail(self, value: object) -> None:
        """Keep the error that `value` holds; the first one counts."""
        self.error = self.error or from_value(value)

    def _give_up(self, exc: MalformedAnswer) -> None:
        self.broken = True
        self.error = self.error or exc


class SseParser(Parser):
    """A Parser over server-sent events, each of which holds a JSON object; a `[DONE]` means nothing."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._sse = SseDecoder()

    @abstractmethod
    def _on_message(self, message: Mapping[str, Any], name: str | None, out: list[Event], /) -> None:
        """What one event means; `name` is the one beside its data."""

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        if not event.data.startswith(b"[DONE]"):
            self._on_message(json_object(event.data), event.name, out)

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for event in self._sse.feed(data):
            self._on_event(event, out)

    def _flush(self, out: list[Event]) -> None:
        for event in self._sse.flush():
            self._on_event(event, out)


class LinesParser(Parser):
    """A Parser over lines of JSON."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._lines = LineSplitter()

    @abstractmethod
    def _on_object(self, told: Mapping[str, Any], out: list[Event]) -> None: ...

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for line in self._lines.feed(data):
            if line.strip():
                self._on_object(json_object(line), out)

    def _flush(self, out: list[Event]) -> None:
        line = self._lines.flush()
        if line.strip():
            self._on_object(json_object(line), out)


class FrameParser(Parser):
    """A Parser over the binary frames of AWS."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._frames = EventStreamDecoder()

    @abstractmethod
    def _on_payload(self, name: str, payload: Mapping[str, Any], out: list[Event]) -> None: ...

    def _feed(self, data: bytes, out: list[Event]) -> None:
        for frame in self._frames.feed(data):
            self._on_frame(frame, out)

    def _flush(self, out: list[Event]) -> None:
        """A frame that is not whole means nothing."""

    def _on_frame(self, frame: Frame, out: list[Event]) -> None:
        payload = json_object(frame.payload or b"{}")
        if frame.headers.get(":message-type", "event") == "event":
            self._on_payload(frame.headers.get(":event-type", ""), payload, out)
            return
        name = frame.headers.get(":exception-type") or frame.headers.get(":error-code") or "exception"
        said = text_of(payload.get("message")) or frame.headers.get(":error-message")
        self._fail({"error": {"type": name, "message": said}})

"""Server-sent events and lines of JSON: bytes in, events out. No IO.

Works on bytes, because decoding text first would split lines at U+2028 and its like, and would need the
pieces of a character that a read cut in two. Cost is linear in the bytes fed, however they are cut.
"""

from typing import NamedTuple

from inference_client.errors import MalformedAnswer

MAX_EVENT_BYTES = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its data lines joined by a newline, and its name (empty when it has none)."""

    data: bytes
    name: str


class LineSplitter:
    """Cuts bytes into lines ended by CR, LF or CRLF.

    Raises MalformedAnswer when a line grows over `max_bytes`.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines completed by `data`, without their ends."""
        if self._after_cr or b"\r" in data:
            data = self._unified(data)
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._max:
                raise MalformedAnswer(code="event_too_large")
        return lines

    def flush(self) -> bytes:
        """What is left of a last line without an end."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return rest

    def _unified(self, data: bytes) -> bytes:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            # A CR counts as a line end at once, so an event is not held back until the next read;
            # the LF that may follow it is then dropped.
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class SseDecoder:
    """Turns the body of a `text/event-stream` into events. Comments are counted and dropped."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = LineSplitter(max_bytes)
        self._max = max_bytes
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._first = True
        self.comments = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events completed by `data`. Raises MalformedAnswer when one grows over the cap."""
        events: list[SseEvent] = []
        for line in self._lines.feed(data):
            if not line:
                if self._data:
                    events.append(self._event())
                self._name = ""
            elif line.startswith(b"data: "):
                self._add(line[6:])
            else:
                self._field(line)
        return events

    def flush(self) -> list[SseEvent]:
        """The last event, when the body ended without the blank line that should close it."""
        line = self._lines.flush()
        if line:
            self._field(line)
        return [self._event()] if self._data else []

    def _event(self) -> SseEvent:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = SseEvent(data, self._name)
        self._data = []
        self._size = 0
        self._name = ""
        return event

    def _add(self, value: bytes) -> None:
        self._first = False
        self._size += len(value) + 1
        if self._size > self._max:
            raise MalformedAnswer(code="event_too_large")
        self._data.append(value)

    def _field(self, line: bytes) -> None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if line.startswith(b":"):
            self.comments += 1
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")

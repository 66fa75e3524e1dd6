"""The event stream, line by line."""

import pytest

from inference_client.errors import MalformedAnswer
from inference_client.sse import LineSplitter, SseDecoder, SseEvent

CASES = [
    ("plain", b"data: a\n\n", [(b"a", "")]),
    ("no space after the colon", b"data:a\n\n", [(b"a", "")]),
    ("only one space is dropped", b"data:  a\n\n", [(b" a", "")]),
    ("several data lines", b"data: a\ndata: b\n\n", [(b"a\nb", "")]),
    ("an empty data line", b"data: a\ndata\n\n", [(b"a\n", "")]),
    ("a name", b"event: ping\ndata: {}\n\n", [(b"{}", "ping")]),
    ("a name belongs to its event only", b"event: x\ndata: 1\n\ndata: 2\n\n", [(b"1", "x"), (b"2", "")]),
    ("a name without data", b"event: x\n\ndata: 2\n\n", [(b"2", "")]),
    ("comments", b": hi\n\n:\ndata: a\n: between\n\n", [(b"a", "")]),
    ("unknown fields", b"id: 3\nretry: 9\nfoo\ndata: a\n\n", [(b"a", "")]),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", ""), (b"b", "")]),
    ("CR", b"data: a\r\rdata: b\r\r", [(b"a", ""), (b"b", "")]),
    ("a byte order mark", b"\xef\xbb\xbfdata: a\n\n", [(b"a", "")]),
    ("U+2028 ends no line", "data: a\u2028b\n\n".encode(), [("a\u2028b".encode(), "")]),
    ("no blank line at the end", b"data: a\n\ndata: b", [(b"a", ""), (b"b", "")]),
    ("a line end but no blank line", b"data: a\n", [(b"a", "")]),
    ("nothing", b"", []),
    ("only blank lines", b"\n\n\n", []),
]


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_events(data: bytes, expected: list[tuple[bytes, str]]) -> None:
    decoder = SseDecoder()
    assert [*decoder.feed(data), *decoder.flush()] == [SseEvent(*row) for row in expected]


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_events_byte_by_byte(data: bytes, expected: list[tuple[bytes, str]]) -> None:
    decoder = SseDecoder()
    events = [event for at in range(len(data)) for event in decoder.feed(data[at : at + 1])]
    assert [*events, *decoder.flush()] == [SseEvent(*row) for row in expected]


def test_an_event_that_ends_in_cr_is_not_held_back() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent(b"a", "")]
    assert decoder.feed(b"\ndata: b\n\n") == [SseEvent(b"b", "")]


def test_comments_are_counted() -> None:
    decoder = SseDecoder()
    decoder.feed(b": one\n: two\n\n")
    assert decoder.comments == 2


@pytest.mark.parametrize("data", [b"data: " + b"x" * 200, b"data: x\n" * 100])
def test_an_endless_event_is_refused(data: bytes) -> None:
    decoder = SseDecoder(max_bytes=100)
    with pytest.raises(MalformedAnswer) as caught:
        for at in range(len(data)):
            decoder.feed(data[at : at + 1])
    assert caught.value.code == "event_too_large"


def test_lines_that_are_cut_anywhere() -> None:
    lines = LineSplitter()
    assert lines.feed(b"ab") == []
    assert lines.feed(b"c\nd\ne") == [b"abc", b"d"]
    assert lines.flush() == b"e"
    assert lines.flush() == b""

"""The binary event stream of AWS: bytes in, frames out. No IO.

The signature of a request is botocore's (`adapters/sigv4.py`), the frames are read here. A call with a Bedrock API key
must be readable without that package; its parser copies the whole rest of what has arrived for each frame (3 MB that
came at once cost 125 µs a frame, here 4); and what it raises on damage is not of one tree. Tests hold both against
each other, on recordings and on damaged ones: they give the same frames and refuse at the same place.

A frame is: length of all, length of the headers, CRC-32 of those eight bytes, headers, payload, CRC-32 of all
before it. Numbers are big-endian, four bytes each.
"""

import struct
import zlib
from typing import NamedTuple

from inference_client.errors import MalformedAnswer

MAX_FRAME_BYTES = 16 * 1024 * 1024
_PRELUDE = struct.Struct(">III")
_TAIL = 4
_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 and 7 carry their own length."""


class Frame(NamedTuple):
    """One message: its headers that are strings, and its payload."""

    headers: dict[str, str]
    payload: bytes


class EventStreamDecoder:
    """Cuts bytes into frames and checks both sums of each. Raises MalformedAnswer where they are wrong."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by `data`."""
        self._buffer += data
        frames: list[Frame] = []
        at = 0
        while len(self._buffer) - at >= _PRELUDE.size:
            total, header_size, crc = _PRELUDE.unpack_from(self._buffer, at)
            if zlib.crc32(self._buffer[at : at + 8]) != crc:
                raise MalformedAnswer(code="frame_prelude_crc")
            if total > MAX_FRAME_BYTES or total < _PRELUDE.size + header_size + _TAIL:
                raise MalformedAnswer(code="frame_size")
            if len(self._buffer) - at < total:
                break
            frames.append(_frame(bytes(self._buffer[at : at + total]), header_size))
            at += total
        del self._buffer[:at]
        return frames

    @property
    def pending(self) -> int:
        """Bytes of a frame that has begun."""
        return len(self._buffer)


def frame_bytes(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame as it goes over the wire, for servers made for tests."""
    head = b"".join(
        struct.pack(">B", len(name.encode()))
        + name.encode()
        + struct.pack(">BH", _STRING, len(value.encode()))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", _PRELUDE.size + len(head) + len(payload) + _TAIL, len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def _frame(data: bytes, header_size: int) -> Frame:
    if zlib.crc32(data[:-_TAIL]) != struct.unpack(">I", data[-_TAIL:])[0]:
        raise MalformedAnswer(code="frame_crc")
    end = _PRELUDE.size + header_size
    try:
        headers = _headers(data[_PRELUDE.size : end])
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as exc:
        raise MalformedAnswer(code="frame_headers") from exc
    return Frame(headers, data[end:-_TAIL])


def _headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name = data[at + 1 : name_end].decode()
        kind = data[name_end]
        at = name_end + 1
        if kind in (6, _STRING):
            (size,) = struct.unpack_from(">H", data, at)
            at += 2
            if kind == _STRING:
                headers[name] = data[at : at + size].decode()
        else:
            size = _SIZES[kind]
        at += size
    return headers

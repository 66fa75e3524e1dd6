"""Frames of AWS's event stream, read by our decoder and by botocore's: the same frames, the same refusals."""

import random
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer, ParserError  # type: ignore[import-untyped]

from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import Answer
from inference_client.errors import MalformedAnswer
from inference_client.eventstream import EventStreamDecoder, frame_bytes
from tests.unit.inference_client.recordings import recordings

WORDS = ("Grüße", " 你好", " x" * 3000, "")
KNOWN = bytes.fromhex("000000dd0000004e85230816")
"""The beginning of a frame of 221 bytes whose tail is c59ddc55."""


def corpus() -> list[bytes]:
    made = b"".join(ADAPTERS["bedrock"].scripted(Answer(words=WORDS)))
    recorded = [r.body for r in recordings() if r.provider == "bedrock" and r.mode == "stream"]
    return [made, *recorded]


def ours(body: bytes, size: int) -> tuple[list[Any], bool]:
    decoder, frames = EventStreamDecoder(), []
    try:
        for at in range(0, len(body), size):
            frames += decoder.feed(body[at : at + size])
    except MalformedAnswer:
        return frames, True
    return frames, False


def theirs(body: bytes, size: int) -> tuple[list[Any], bool]:
    buffer, frames = EventStreamBuffer(), []
    try:
        for at in range(0, len(body), size):
            buffer.add_data(body[at : at + size])
            frames += [(message.headers, message.payload) for message in buffer]
    except (ParserError, KeyError, UnicodeDecodeError, IndexError, ValueError):
        return frames, True
    return frames, False


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_both_read_the_same_frames(size: int) -> None:
    for body in corpus():
        got, expected = ours(body, size), theirs(body, size)
        assert got[1] is expected[1] is False
        assert [(frame.headers, frame.payload) for frame in got[0]] == expected[0]
        assert got[0]


def test_both_refuse_the_same_damage() -> None:
    chance = random.Random(2026)
    bodies = [body for body in corpus() if len(body) < 30_000]
    refused = 0
    for _ in range(3000):
        data = bytearray(chance.choice(bodies))
        at = chance.randrange(len(data))
        data[at] ^= 1 << chance.randrange(8)
        got, expected = ours(bytes(data), 1024), theirs(bytes(data), 1024)
        assert [(frame.headers, frame.payload) for frame in got[0]] == expected[0]
        assert got[1] == expected[1]
        refused += got[1]
    assert refused > 2900


def test_the_frame_of_the_reference() -> None:
    headers = {":event-type": "metadata", ":content-type": "application/json", ":message-type": "event"}
    payload = (
        b'{"usage":{"inputTokens":31,"outputTokens":9,"totalTokens":40,"cacheReadInputTokens":0},'
        b'"metrics":{"latencyMs":412},"p":"abcde"}'
    )
    frame = frame_bytes(headers, payload)
    assert (len(frame), frame[:12], frame[-4:].hex()) == (221, KNOWN, "c59ddc55")

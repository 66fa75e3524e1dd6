"""However the network cuts a stream the values are the same; whatever it brings, nothing but our errors comes out."""

import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from inference_client.adapters.base import Parser
from inference_client.adapters.failures import failure
from inference_client.adapters.kinds import ADAPTERS, parser_for
from inference_client.adapters.scripted import Answer
from inference_client.errors import InferenceError
from inference_client.eventstream import EventStreamDecoder
from inference_client.replay import Recording, replayed
from tests.unit.inference_client.recordings import parametrised, recordings

MUTATIONS = [4000, pytest.param(100_000, marks=pytest.mark.prove)]
WORDS = ("Grüße", " 你好", " 👩‍🚀", "\u2028zeile", "\r\n", ' "quoted"', "")


def _body(name: str, **options: Any) -> bytes:
    return b"".join(ADAPTERS[name].scripted(Answer(words=WORDS, cache_read=3, **options)))


def _parser(name: str) -> Parser:
    return ADAPTERS[name].parser(ADAPTERS[name].kinds[0])


def _read(name: str, body: bytes, cuts: tuple[int, ...]) -> tuple[Any, ...]:
    parser = _parser(name)
    events = []
    for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True):
        events += parser.feed(body[start:end])
    events += parser.flush()
    return (
        events,
        parser.finish_raw,
        parser.usage(),
        parser.served_model,
        parser.upstream_id,
        parser.complete,
    )


@pytest.mark.parametrize("name", ADAPTERS)
def test_cutting_in_two_at_every_byte_changes_nothing(name: str) -> None:
    body = _body(name)
    whole = _read(name, body, ())
    assert "".join(event.text for event in whole[0]) == "".join(WORDS)
    assert all(_read(name, body, (at,)) == whole for at in range(1, len(body)))


@pytest.mark.parametrize("name", ADAPTERS)
def test_reading_byte_by_byte_changes_nothing(name: str) -> None:
    body = _body(name)
    assert _read(name, body, tuple(range(1, len(body)))) == _read(name, body, ())


@pytest.mark.parametrize("name", [name for name in ADAPTERS if "event-stream" in ADAPTERS[name].content_type])
def test_line_ends_of_every_kind_mean_the_same(name: str) -> None:
    body = _body(name).replace(b"\\r\\n", b"")
    crlf = body.replace(b"\n", b"\r\n")
    whole = _read(name, body, ())
    assert _read(name, body.replace(b"\n", b"\r"), ()) == whole
    assert all(_read(name, crlf, (at,)) == whole for at in range(1, len(crlf)))


@pytest.mark.parametrize("recording", parametrised(streams_only=True))
def test_recordings_give_the_same_at_any_cut(recording: Recording) -> None:
    whole = replayed(recording)
    size = len(recording.body)
    every = range(1, size, max(1, size // 40))
    assert all(replayed(recording, cuts=(at,)) == whole for at in every)
    assert replayed(recording, cuts=range(1, min(size, 4000))) == whole


@pytest.mark.prove
@pytest.mark.parametrize("recording", parametrised(streams_only=True))
def test_recordings_give_the_same_at_every_byte(recording: Recording) -> None:
    """Long ones are cut at every byte at once, and in two at as many places as 20 s allow."""
    whole = replayed(recording)
    size = len(recording.body)
    assert replayed(recording, cuts=range(1, size)) == whole
    every = range(1, size, max(1, size // 16_000))
    started = time.process_time()
    for at in every:
        assert replayed(recording, cuts=(at,)) == whole
        if size > 16_000 and time.process_time() - started > 20:
            break


@pytest.mark.prove
@pytest.mark.parametrize("name", ADAPTERS)
def test_an_endless_answer_never_takes_more_than_the_cap(name: str) -> None:
    """64 MiB that never end an event, or that are one long line: given up within the caps of one event."""
    head = _body(name)[:-40]
    for filler in (b"x", b"data: y\n", b"\x00"):
        parser = _parser(name)
        parser.feed(head)
        tracemalloc.start()
        for _ in range(1024):
            parser.feed(filler * (65_536 // len(filler)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 * 1024 * 1024


def _mutant(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0 if data:
                data[min(at, len(data) - 1)] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(40)]
            case 2:
                data[at:at] = chance.choice(
                    (b"\n\n", b'"', b"}", b"null", b"\x00", b"[", b"data: ", b"-1e999", b"{}")
                )
            case 3:
                data[at:at] = data[chance.randrange(len(data) + 1) :][:60]
            case _:
                del data[at:]
    return bytes(data)


def _all_parsers() -> Sequence[tuple[Callable[[], Parser], bytes]]:
    """Each parser with an answer: every route of every adapter, and every recording by its own."""
    made = [
        (partial(make, adapter.kinds[0]), _body(name))
        for name, adapter in ADAPTERS.items()
        for make in dict.fromkeys(adapter.parsers.values())
    ]
    recorded = [
        (partial(_recorded_parser, r), r.body[:20_000])
        for r in recordings()
        if parser_for(r.api, r.provider) is not None
    ]
    return made + recorded


def _recorded_parser(recording: Recording) -> Parser:
    parser = parser_for(recording.api, recording.provider)
    assert parser is not None
    return parser


@pytest.mark.parametrize("count", MUTATIONS)
def test_mutated_answers_raise_nothing_and_never_hang(count: int) -> None:
    chance = random.Random(20260701)
    corpus = _all_parsers()
    slowest = 0.0
    for _ in range(count):
        make, body = chance.choice(corpus)
        data = _mutant(body, chance)
        parser = make()
        started = time.process_time()
        cut = chance.randrange(len(data) + 1)
        events = parser.feed(data[:cut]) + parser.feed(data[cut:]) + parser.flush()
        parser.usage(precount=7)
        assert parser.error is None or isinstance(parser.error, InferenceError)
        assert sum(len(getattr(event, "text", "")) for event in events) <= len(data)
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 5


@pytest.mark.parametrize("count", MUTATIONS)
def test_mutated_whole_answers_raise_nothing(count: int) -> None:
    chance = random.Random(7)
    corpus = [(partial(_recorded_parser, r), r.body) for r in recordings() if r.mode != "stream"]
    corpus = [row for row in corpus if parser_for(row[0].args[0].api, row[0].args[0].provider)]
    for _ in range(count // 4 if corpus else 0):
        make, body = chance.choice(corpus)
        data = _mutant(body, chance)
        parser = make()
        parser.whole(data)
        parser.usage()
        wait = {"retry-after": data[:9].decode("latin-1"), "retry-after-ms": data[-2:].decode("latin-1")}
        assert isinstance(failure(chance.choice((400, 429, 500, 200)), wait, data), InferenceError)


@pytest.mark.parametrize("count", MUTATIONS)
def test_mutated_embeddings_raise_only_our_errors(count: int) -> None:
    chance = random.Random(11)
    corpus = [r.body[:3000] for r in recordings() if r.api == "embeddings"] or [
        b'{"data":[{"embedding":[1]}]}'
    ]
    for _ in range(count // 4):
        data = _mutant(chance.choice(corpus), chance)
        for adapter in ADAPTERS.values():
            for kind in adapter.kinds[:1]:
                try:
                    adapter.embeddings(data, kind, 1, {})
                except InferenceError:
                    continue


def test_a_damaged_frame_is_noticed() -> None:
    body = bytearray(_body("bedrock"))
    body[30] ^= 1
    parser = _parser("bedrock")
    parser.feed(bytes(body))
    assert parser.broken
    assert parser.error is not None
    assert parser.error.code in {"frame_crc", "frame_prelude_crc", "frame_size"}
    assert EventStreamDecoder().feed(b"") == []

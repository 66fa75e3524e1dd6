"""A reader sees every event once, in order, whenever it comes; text equals what was written."""

import asyncio
from uuid import UUID, uuid4

import orjson
import pytest

from app.chat.events import MAX_DELTA_CHARS, TurnEvent, TurnLog


class Sink:
    """Keeps what a log copied out."""

    def __init__(self) -> None:
        self.copied: list[TurnEvent] = []

    def append(self, turn_id: UUID, event: TurnEvent) -> None:
        self.copied.append(event)


def text_of(events: list[TurnEvent], kind: str = "text") -> str:
    return "".join(e.data.get(kind, "") for e in events if e.name == "delta")


async def read(log: TurnLog, after: int = 0) -> list[TurnEvent]:
    return [event async for batch in log.follow(after) for event in batch]


@pytest.mark.parametrize("replayable", [True, False])
def test_readers_who_come_early_in_the_middle_and_late_see_the_same(replayable: bool) -> None:
    async def story() -> None:
        log = TurnLog(uuid4(), sink=Sink() if replayable else None)
        early = asyncio.ensure_future(read(log))
        log.emit("turn", {})
        for word in ("One ", "two ", "three"):
            log.delta("text", word)
            await asyncio.sleep(0)
        middle = asyncio.ensure_future(read(log))
        await asyncio.sleep(0.03)
        log.delta("text", ".")
        log.emit("done", {"finish_reason": "stop"})
        late = await read(log)
        assert await early == await middle == late == log.events
        assert text_of(late) == log.text == "One two three."
        assert [e.number for e in late] == list(range(1, len(late) + 1))

    asyncio.run(story())


def test_a_reader_resumes_after_any_number_without_gap_or_double() -> None:
    async def story() -> None:
        log = TurnLog(uuid4())
        for number in range(20):
            log.delta("text", f"{number} ")
            log.flush()
        log.emit("done", {})
        for after in range(len(log.events) + 1):
            rest = await read(log, after)
            assert text_of(log.events[:after]) + text_of(rest) == log.text

    asyncio.run(story())


def test_text_whose_reader_waits_for_the_end_is_one_piece_between_other_events() -> None:
    async def story() -> None:
        log = TurnLog(uuid4())
        log.read_whole = True
        for word in ("One ", "two "):
            log.delta("text", word)
            await asyncio.sleep(0)
        assert log.events == []
        assert log.text == "One two "
        log.emit("notice", {})
        log.delta("text", "three.")
        log.flush()
        log.emit("done", {})
        assert [(e.name, e.data.get("text")) for e in await read(log)] == [
            ("delta", "One two "),
            ("notice", None),
            ("delta", "three."),
            ("done", None),
        ]

    asyncio.run(story())


def test_a_reader_that_leaves_does_not_wake_or_end_the_others() -> None:
    async def story() -> None:
        log = TurnLog(uuid4())
        stays, leaves = asyncio.ensure_future(read(log)), asyncio.ensure_future(read(log))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        log.emit("done", {})
        assert [e.name for e in await stays] == ["done"]

    asyncio.run(story())


def test_deltas_of_a_replayable_turn_are_joined_and_the_first_is_not_held_back() -> None:
    async def story() -> None:
        sink = Sink()
        log = TurnLog(uuid4(), sink=sink)
        log.delta("text", "first")
        assert text_of(sink.copied) == "first"
        for _ in range(50):
            log.delta("text", "x")
        assert text_of(sink.copied) == "first"
        log.emit("done", {})
        assert [e.name for e in sink.copied] == ["delta", "delta", "done"]
        assert text_of(sink.copied) == log.text

    asyncio.run(story())


def test_text_and_reasoning_stay_apart_and_in_order() -> None:
    async def story() -> None:
        log = TurnLog(uuid4(), sink=Sink())
        for kind, piece in (
            ("reasoning", "a"),
            ("reasoning", "b"),
            ("text", "c"),
            ("reasoning", "d"),
            ("text", "e"),
        ):
            log.delta(kind, piece)
        log.emit("done", {})
        deltas = [e.data for e in log.events if e.name == "delta"]
        assert deltas == [
            {"reasoning": "a"},
            {"reasoning": "b"},
            {"text": "c"},
            {"reasoning": "d"},
            {"text": "e"},
        ]
        assert (log.text, log.reasoning) == ("ce", "abd")

    asyncio.run(story())


def test_no_event_passes_64_kilobytes() -> None:
    async def story() -> None:
        log = TurnLog(uuid4())
        log.delta("text", "\x01😀" * MAX_DELTA_CHARS)
        log.emit("done", {})
        assert max(len(e.frame) for e in log.events) < 64 * 1024
        assert text_of(log.events) == log.text

    asyncio.run(story())


def test_a_frame_is_a_server_sent_event() -> None:
    head, data = TurnEvent(7, "delta", {"text": "a\nb"}).frame.split(b"data: ")
    assert head == b"id: 7\nevent: delta\n"
    assert data.endswith(b"\n\n")
    assert orjson.loads(data) == {"text": "a\nb"}

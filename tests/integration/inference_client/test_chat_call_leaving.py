"""Leaving and cancelling: exactly one record, the server is let go, and where that saves nothing the rest is read."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import Answer
from inference_client.servers import Timeouts
from inference_client.testing.fault_server import Script, Seen
from inference_client.types import CallRecord
from tests.integration.inference_client.answers import WORDS, kind, leave_after, script
from tests.integration.inference_client.scenes import Scene, run_scene, until


@pytest.mark.parametrize("ending", ["normal", "hang"])
def test_leaving_after_the_last_word_still_brings_the_numbers(ending: Any) -> None:
    async def scene(scene: Scene) -> CallRecord:
        async with scene.call() as call:
            async for event in call:
                if getattr(event, "text", "") == WORDS[-1]:
                    break
        return call.record

    record = run_scene(scene, Script(answer=Answer(words=WORDS), ending=ending), kind="gemini")
    assert (record.outcome, record.estimated, record.usage.output_tokens) == ("completed", False, 5)


def _pieces(name: str) -> int:
    return len(tuple(ADAPTERS[name].scripted(script().answer)))


def _tells_running_numbers(name: str) -> bool:
    """Whether the pieces up to the second word hold numbers that cover what was said."""
    parser = ADAPTERS[name].parser(ADAPTERS[name].kinds[0])
    pieces = iter(ADAPTERS[name].scripted(script().answer))
    events = 0
    while events < 2:
        events += len(parser.feed(next(pieces)))
    return parser.usage_is_running and parser.usage().output_tokens == 2


@pytest.mark.parametrize(
    ("name", "count"), [(name, count) for name in ADAPTERS for count in range(len(WORDS))]
)
def test_leaving_at_every_event_stops_the_server(name: str, count: int) -> None:
    async def scene(scene: Scene) -> CallRecord:
        record = await leave_after(scene, count)
        if count:
            seen = scene.upstream.seen[0]
            await until(lambda: seen.left_at is not None)
        assert len(scene.upstream.seen) == (1 if count else 0)
        return record

    record = run_scene(scene, script(gap_s=0.03), kind=kind(name))
    assert record.outcome == "stopped"
    assert record.never_sent is (count == 0)
    assert record.attempts == min(count, 1)
    # Some tell running numbers; everybody else owes the output when the reader leaves.
    assert record.estimated is (count > 0 and not _tells_running_numbers(name))


def _is_over(seen: Seen) -> bool:
    return seen.finished or seen.left_at is not None


async def _cancelled_after(scene: Scene, seconds: float) -> None:
    """Begin to read and cancel some time after the first piece; after 0 s, before the first piece."""
    before = len(scene.upstream.seen)
    task = asyncio.create_task(scene.read())
    await until(lambda: len(scene.upstream.seen) > before)
    if seconds:
        seen = scene.upstream.seen[-1]
        await until(lambda: seen.sent > 0)
        await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("name", ADAPTERS)
def test_cancelling_at_every_piece_leaves_one_record(name: str) -> None:
    async def scene(scene: Scene) -> list[CallRecord]:
        for number in range(_pieces(name) + 2):
            await _cancelled_after(scene, 0.01 * number)
        for seen in scene.upstream.seen:
            await until(partial(_is_over, seen))
        return [call.record for call in scene.calls]

    records = run_scene(scene, script(gap_s=0.01), kind=kind(name))
    assert {record.outcome for record in records} <= {"stopped", "completed"}
    assert records[0].outcome == "stopped"
    assert all(record.attempts == 1 for record in records)


def test_cancelling_before_the_headers_closes_the_connection() -> None:
    async def scene(scene: Scene) -> CallRecord:
        task = asyncio.create_task(scene.read())
        await until(lambda: bool(scene.upstream.seen))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await until(lambda: scene.upstream.seen[0].left_at is not None)
        return scene.calls[0].record

    record = run_scene(scene, script(wait_s=30))
    assert (record.outcome, record.estimated, record.never_sent) == ("stopped", True, False)


def test_a_hundred_cancelled_calls_leave_no_connection() -> None:
    async def scene(scene: Scene) -> int:
        for number in range(100):
            task = asyncio.create_task(scene.read())
            await asyncio.sleep(0.0005 * (number % 12))
            task.cancel()
            await asyncio.wait([task])
        await until(lambda: not any(s.left_at is None and not s.finished for s in scene.upstream.seen))
        outcome = await scene.read()
        assert outcome.record.outcome == "completed"
        return len([call.record for call in scene.calls])

    assert run_scene(scene, script(gap_s=0.001)) == 101


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("count", [1, 3])
def test_where_leaving_does_not_stop_the_bill_the_rest_is_read(name: str, count: int) -> None:
    async def scene(scene: Scene) -> CallRecord:
        record = await leave_after(scene, count)
        assert scene.upstream.seen[0].finished
        return record

    record = run_scene(scene, script(gap_s=0.01), kind=kind(name), abort_stops_billing=False)
    assert (record.outcome, record.estimated, record.finish_reason) == ("stopped", False, "stop")
    assert (record.usage.input_tokens, record.usage.output_tokens) == (40, 5)
    assert record.output_chars == len("".join(WORDS))


def _cancelled_at(when: Callable[[Scene], bool]) -> Callable[[Scene], Any]:
    async def scene(scene: Scene) -> CallRecord:
        task = asyncio.create_task(scene.read())
        await until(lambda: when(scene))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return scene.calls[0].record

    return scene


def test_cancelling_before_the_headers_drains_too() -> None:
    scene = _cancelled_at(lambda scene: bool(scene.upstream.seen))
    record = run_scene(scene, script(wait_s=0.1), abort_stops_billing=False)
    assert (record.outcome, record.estimated) == ("stopped", False)
    assert record.usage.output_tokens == 5


def test_a_drain_that_is_cancelled_still_leaves_a_record() -> None:
    async def scene(scene: Scene) -> CallRecord:
        task = asyncio.create_task(scene.read())
        await until(lambda: bool(scene.upstream.seen and scene.upstream.seen[0].sent))
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: scene.upstream.seen[0].left_at is not None)
        return scene.calls[0].record

    record = run_scene(scene, script(gap_s=0.05, ending="hang"), abort_stops_billing=False)
    assert (record.outcome, record.estimated) == ("stopped", True)


def test_a_drain_ends_after_its_time() -> None:
    timeouts = Timeouts(first_token=5, idle=5, total=20, grace=0.2, drain=0.2)

    async def scene(scene: Scene) -> CallRecord:
        return await leave_after(scene, 1)

    hanging = script(cut_at=400, ending="hang")
    record = run_scene(scene, hanging, abort_stops_billing=False, timeouts=timeouts)
    assert (record.outcome, record.estimate_reason) == ("stopped", "no_usage")


def test_a_drain_without_headers_ends_after_its_time() -> None:
    timeouts = Timeouts(first_token=5, idle=5, total=20, grace=0.2, drain=0.2)
    scene = _cancelled_at(lambda scene: bool(scene.upstream.seen))
    record = run_scene(scene, script(wait_s=30), abort_stops_billing=False, timeouts=timeouts)
    assert (record.outcome, record.estimate_reason) == ("stopped", "no_usage")


def test_a_refusal_met_while_draining_changes_nothing() -> None:
    scene = _cancelled_at(lambda scene: bool(scene.upstream.seen))
    record = run_scene(scene, Script(status=500, body=(b"{}",), wait_s=0.1), abort_stops_billing=False)
    assert (record.outcome, record.estimated) == ("stopped", False)
    assert record.error is not None
    assert record.error.name == "ServerFault"

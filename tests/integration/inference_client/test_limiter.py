"""Slots, and the line for them, under real concurrency."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from inference_client.errors import Busy
from inference_client.fair_queue import Lane
from inference_client.limiter import Limiter
from tests.integration.inference_client.scenes import until


def run(scene: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(scene(), 30))


class _Stage:
    """Calls that hold a slot until they are let go."""

    def __init__(self, slots: int) -> None:
        self.limiter = Limiter(slots)
        self.order: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, lane: Lane = "interactive", team: str = "A", person: str = "p") -> None:
        self._gates[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, lane, team, person))
        await asyncio.sleep(0)

    async def go(self, name: str) -> None:
        self._gates[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def leave(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])

    async def _hold(self, name: str, lane: Lane, team: str, person: str) -> None:
        async with self.limiter.slot(lane=lane, team=team, person=person):
            self.order.append(name)
            await self._gates[name].wait()


def test_slots_are_given_in_fair_order() -> None:
    async def scene() -> list[str]:
        stage = _Stage(1)
        await stage.come("first")
        for name, team in (("a1", "A"), ("a2", "A"), ("b1", "B")):
            await stage.come(name, team=team)
        assert (stage.limiter.running, stage.limiter.waiting) == (1, 3)
        for name in ("first", "a1", "b1", "a2"):
            await stage.go(name)
        assert (stage.limiter.running, stage.limiter.waiting) == (0, 0)
        return stage.order

    assert run(scene) == ["first", "a1", "b1", "a2"]


def test_background_leaves_a_slot_for_people() -> None:
    async def scene() -> list[str]:
        stage = _Stage(2)
        for name in ("b1", "b2", "b3"):
            await stage.come(name, lane="background")
        assert (stage.limiter.running, stage.limiter.waiting) == (1, 2)
        await stage.come("person")
        assert stage.order == ["b1", "person"]
        await stage.come("person2")
        await stage.go("b1")
        assert stage.order[-1] == "person2"
        await stage.go("person")
        return stage.order

    assert run(scene) == ["b1", "person", "person2", "b2"]


def test_one_slot_serves_background_too() -> None:
    async def scene() -> list[str]:
        stage = _Stage(1)
        await stage.come("b1", lane="background")
        await stage.go("b1")
        return stage.order

    assert run(scene) == ["b1"]


def test_whoever_leaves_the_line_or_a_slot_lets_the_next_in() -> None:
    async def scene() -> list[str]:
        stage = _Stage(1)
        for name in ("holds", "leaves", "next"):
            await stage.come(name)
        await stage.leave("leaves")
        assert stage.limiter.waiting == 1
        await stage.leave("holds")
        await asyncio.sleep(0)
        assert stage.limiter.running == 1
        await stage.go("next")
        return stage.order

    assert run(scene) == ["holds", "next"]


def test_a_slot_that_comes_in_the_moment_of_leaving_is_passed_on() -> None:
    async def scene() -> list[str]:
        stage = _Stage(1)
        for name in ("holds", "unlucky", "next"):
            await stage.come(name)
        stage._gates["holds"].set()
        await asyncio.sleep(0)
        # The slot is given now; the one it is given to is cancelled before it can run.
        stage._tasks["unlucky"].cancel()
        await until(lambda: "next" in stage.order)
        await stage.go("next")
        assert stage.limiter.running == 0
        return stage.order

    assert "next" in run(scene)


def test_a_slot_is_not_given_to_one_that_is_leaving() -> None:
    async def scene() -> list[str]:
        stage = _Stage(1)
        for name in ("holds", "unlucky", "next"):
            await stage.come(name)
        # Both happen before either has run: the holder lets go, the one in front of the line leaves.
        stage._tasks["holds"].cancel()
        stage._tasks["unlucky"].cancel()
        await until(lambda: "next" in stage.order)
        await stage.go("next")
        assert (stage.limiter.running, stage.limiter.waiting) == (0, 0)
        return stage.order

    assert run(scene) == ["holds", "next"]


def test_a_wait_that_is_too_long_names_position_and_expectation() -> None:
    async def scene() -> tuple[Busy, Busy]:
        stage = _Stage(1)
        with pytest.raises(Busy) as unknown:
            await stage.come("holds")
            async with stage.limiter.slot(lane="interactive", team="A", person="q", patience_s=0.01):
                pass
        await asyncio.sleep(0.05)
        await stage.go("holds")
        await stage.come("holds")
        await stage.come("waits")
        with pytest.raises(Busy) as known:
            async with stage.limiter.slot(lane="interactive", team="A", person="p", patience_s=0.01):
                pass
        assert stage.limiter.waiting == 1
        await stage.go("holds")
        await stage.go("waits")
        return unknown.value, known.value

    unknown, known = run(scene)
    assert (unknown.position, unknown.expected_s) == (1, None)
    assert known.position == 2
    assert known.expected_s is not None
    assert known.expected_s > 0.05
    assert known.never_sent
    assert "number 2" in known.message


def test_the_wait_is_measured() -> None:
    async def scene() -> float:
        stage = _Stage(1)
        await stage.come("holds")
        asyncio.get_running_loop().call_later(0.05, stage._gates["holds"].set)
        async with stage.limiter.slot(lane="interactive", team="A", person="p") as turn:
            return turn.waited_s

    assert run(scene) >= 0.04


def test_more_slots_are_used_at_once() -> None:
    async def scene() -> int:
        stage = _Stage(1)
        for name in ("a", "b", "c"):
            await stage.come(name)
        stage.limiter.resize(3)
        await asyncio.sleep(0)
        running = stage.limiter.running
        for name in ("a", "b", "c"):
            await stage.go(name)
        return running

    assert run(scene) == 3


def test_a_thousand_calls_never_hold_more_than_the_slots() -> None:
    async def scene() -> tuple[int, int]:
        limiter, most, done = Limiter(7), 0, 0

        async def call(number: int) -> None:
            nonlocal most, done
            lane: Lane = "background" if number % 3 else "interactive"
            async with limiter.slot(lane=lane, team=str(number % 5), person=str(number % 11)):
                most = max(most, limiter.running)
                await asyncio.sleep(0.0002 * (number % 4))
                done += 1

        tasks = [asyncio.create_task(call(number)) for number in range(1000)]
        for number in range(0, 1000, 17):
            asyncio.get_running_loop().call_later(0.001 * (number % 50), tasks[number].cancel)
        await asyncio.wait(tasks)
        assert (limiter.running, limiter.waiting) == (0, 0)
        return most, done

    most, done = run(scene)
    assert most <= 7
    assert done >= 900

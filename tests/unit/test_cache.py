"""The short memory: nothing older than it says, one reader when it is renewed; and one of a thing for each loop."""

import asyncio
import threading

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from pytest_django import Settings

from app.common import cache
from app.common.aio import PerLoop
from app.common.cache import forget_all, remembered
from app.common.db import read_db


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(cache, "time", made)
    return made


def test_a_result_is_never_older_than_was_said_counted_from_before_it_was_read(clock: Clock) -> None:
    @remembered(10.0)
    def read(name: str) -> float:
        clock.now += 3
        return clock.now

    assert read("a") == 103
    clock.now = 104.9
    assert read("a") == 103
    clock.now = 110
    assert read("a") == 113
    assert read("b") == 116


def test_while_one_reads_anew_the_others_take_what_is_known(clock: Clock) -> None:
    seen: list[int] = []

    @remembered(10.0)
    def read() -> int:
        if seen:
            # Asked again while the first of the second half reads.
            seen.append(read())
        return len(seen)

    assert read() == 0
    seen.append(-1)
    clock.now += 6
    assert read() == 2
    assert seen == [-1, 0]


def test_a_read_that_fails_leaves_the_next_its_turn(clock: Clock) -> None:
    fails = True

    @remembered(10.0)
    def read() -> str:
        if fails:
            raise LookupError
        return "found"

    with pytest.raises(LookupError):
        read()
    fails = False
    assert read() == "found"
    fails = True
    clock.now += 6
    with pytest.raises(LookupError):
        read()
    fails = False
    assert read() == "found"


def test_all_that_is_remembered_is_forgotten_at_once(clock: Clock) -> None:
    seen: list[str] = []
    one, other = remembered(10.0)(lambda: seen.append("one")), remembered(10.0)(lambda: seen.append("other"))
    for _ in range(2):
        one()
        other()
    forget_all()
    one()
    other()
    assert seen == ["one", "other"] * 2


def test_each_loop_has_its_own() -> None:
    made = PerLoop(object)

    async def story() -> tuple[object, object, object | None, object]:
        return made(), made(), made.pop(), made()

    one, again, popped, new = asyncio.run(story())
    assert one is again is popped
    assert new is not one
    assert asyncio.run(story())[0] not in {one, new}


def test_on_an_event_loop_what_is_known_serves_while_a_database_thread_reads_anew(
    clock: Clock, settings: Settings
) -> None:
    settings.DATABASE_THREADS = 4
    readers: list[str] = []
    shown = threading.Event()

    @remembered(10.0)
    def read() -> int:
        readers.append(threading.current_thread().name)
        if len(readers) > 1:
            shown.wait(10)
        return len(readers)

    async def story() -> list[int]:
        with pytest.raises(SynchronousOnlyOperation):
            read()
        first = await read_db(read)
        clock.now += 6
        meanwhile = [await read_db(read) for _ in range(5)]
        shown.set()
        return [first, *meanwhile]

    assert asyncio.run(story()) == [1] * 6
    assert len(readers) <= 2, "many read anew at once"
    assert all(name.startswith("db") for name in readers)

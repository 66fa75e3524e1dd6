"""Threads that an event loop hands work to: each answer reaches who waits for it, on the loop that asked."""

import asyncio
import subprocess
import sys
import threading

import pytest

from app.common.threads import Threads


def test_answers_and_errors_reach_who_waits_for_them() -> None:
    threads = Threads(4, "t")

    async def story() -> list[object]:
        calls = [threads.call(lambda n=n: 10 // n) for n in (0, 1, 2, 5) * 50]  # type: ignore[misc]
        return await asyncio.gather(*calls, return_exceptions=True)

    for _ in range(3):  # each on a loop of its own
        found = asyncio.run(story())
        assert [type(x) for x in found[::4]] == [ZeroDivisionError] * 50
        assert found[1::4] + found[2::4] + found[3::4] == [10] * 50 + [5] * 50 + [2] * 50


def test_a_thread_is_started_when_all_others_are_busy() -> None:
    threads, gate = Threads(2, "t"), threading.Event()

    async def story() -> tuple[set[str], set[str]]:
        alone = {await threads.call(lambda: threading.current_thread().name) for _ in range(20)}
        busy = [threads.call(lambda: (gate.wait(20), threading.current_thread().name)[1]) for _ in range(5)]
        asyncio.get_running_loop().call_later(0.05, gate.set)
        return alone, set(await asyncio.gather(*busy))

    alone, together = asyncio.run(story())
    assert "t_0" in alone
    assert together == {"t_0", "t_1"}


def test_work_that_raises_what_no_future_takes_holds_up_no_other() -> None:
    threads = Threads(1, "t")

    async def story() -> list[object]:
        calls = [threads.call(lambda: next(iter(()))), threads.call(lambda: "after")]
        return await asyncio.gather(*calls, return_exceptions=True)

    error, after = asyncio.run(story())
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)
    assert after == "after"


def test_one_that_is_cancelled_holds_up_no_other() -> None:
    threads, gate, done = Threads(1, "t"), threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(20)
        done.set()

    async def story() -> str:
        left = threads.call(work)
        left.cancel()
        after = threads.call(lambda: "after")
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await left
        return await after

    assert asyncio.run(story()) == "after"
    assert done.is_set()


def test_a_loop_that_has_closed_costs_no_thread() -> None:
    threads, gate = Threads(1, "t"), threading.Event()

    async def leaves() -> None:
        assert not threads.call(lambda: gate.wait(20)).done()

    async def comes() -> str:
        return await threads.call(lambda: "here")

    asyncio.run(leaves())
    gate.set()
    assert asyncio.run(comes()) == "here"


def test_what_was_handed_over_is_done_when_the_process_ends() -> None:
    story = """
import time
from app.common.threads import Threads
Threads(1, "t").aside(lambda: (time.sleep(0.2), print("done", flush=True)))
"""
    found = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=True)
    assert found.stdout == "done\n"

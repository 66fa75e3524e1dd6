"""Turns run on their own, stop once and for one reason, and are waited for when the process goes."""

import asyncio
from uuid import uuid4

import pytest

from app.chat.runs import Run, Runs, Stopped, StopSignal
from app.common.errors import Restarting


def test_a_stop_inside_becomes_stopped_with_its_first_reason() -> None:
    async def story() -> str:
        signal = StopSignal()
        asyncio.get_running_loop().call_soon(signal.stop, "stopped")
        asyncio.get_running_loop().call_soon(signal.stop, "interrupted")
        with pytest.raises(Stopped) as caught:
            async with signal:
                await asyncio.sleep(60)
        await asyncio.sleep(0)  # the task itself is not cancelled any more
        return caught.value.reason

    assert asyncio.run(story()) == "stopped"


def test_a_stop_before_the_beginning_is_not_lost() -> None:
    async def story() -> None:
        signal = StopSignal()
        signal.stop("stopped")
        with pytest.raises(Stopped):
            async with signal:
                pytest.fail("must not begin")

    asyncio.run(story())


def test_a_cancellation_that_is_no_stop_stays_a_cancellation() -> None:
    async def story() -> None:
        async def work() -> None:
            async with StopSignal():
                await asyncio.sleep(60)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


def test_a_turn_goes_on_when_its_reader_leaves() -> None:
    async def story() -> None:
        async def work(run: Run) -> None:
            for word in ("kept ", "to ", "the end"):
                await asyncio.sleep(0)
                run.log.delta("text", word)
            run.log.emit("done", {})

        run = Runs().start(uuid4(), work, replayable=False)
        reader = asyncio.ensure_future(anext(run.log.follow()))
        await asyncio.sleep(0)
        reader.cancel()
        assert run.task is not None
        await run.task
        assert run.log.text == "kept to the end"

    asyncio.run(story())


def test_every_turn_ends_with_an_event_even_when_its_code_breaks() -> None:
    async def story() -> None:
        async def work(run: Run) -> None:
            raise ZeroDivisionError

        run = Runs().start(uuid4(), work, replayable=False)
        assert run.task is not None
        with pytest.raises(ZeroDivisionError):
            await run.task
        assert [e.name for e in run.log.events] == ["error"]

    asyncio.run(story())


def test_draining_refuses_new_turns_lets_quick_ones_finish_and_interrupts_slow_ones() -> None:
    async def story() -> None:
        here = Runs()

        def work(seconds: float):
            async def one(run: Run) -> None:
                try:
                    async with run.signal:
                        await asyncio.sleep(seconds)
                    run.log.emit("done", {"finish_reason": "stop"})
                except Stopped as exc:
                    run.log.emit("done", {"finish_reason": exc.reason})

            return one

        quick, slow = (here.start(uuid4(), work(s), replayable=False) for s in (0.01, 60))
        await here.drain(0.2)
        with pytest.raises(Restarting):
            here.start(uuid4(), work(0), replayable=False)
        ends = [run.log.events[-1].data["finish_reason"] for run in (quick, slow)]
        assert ends == ["stop", "interrupted"]

    asyncio.run(story())

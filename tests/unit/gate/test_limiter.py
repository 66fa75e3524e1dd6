"""Slots of a deployment: none is lost, and a stop that comes with one is still a stop."""

import asyncio
from dataclasses import replace

import pytest

from app.gate.limiter import _slots, slot
from tests.unit.chat.test_planning import TARGET


@pytest.mark.parametrize("steps", range(6))
def test_a_stop_that_comes_together_with_the_slot_is_not_lost(steps: int) -> None:
    async def story() -> tuple[bool, int]:
        target = replace(TARGET, slots=1)
        served = False

        async def wait() -> None:
            nonlocal served
            async with slot(target):
                await asyncio.sleep(3600)
                served = True

        held = slot(target)
        await held.__aenter__()
        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await held.__aexit__(None, None, None)
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        done, _ = await asyncio.wait({waiting}, timeout=2)
        return bool(done) and waiting.cancelled(), _slots(target).semaphore._value

    assert asyncio.run(story()) == (True, 1)

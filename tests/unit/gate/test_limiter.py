"""Slots of a deployment: none is lost, and a stop that comes with one is still a stop."""

import asyncio
from dataclasses import replace

import pytest

from app.billing.types import Payer
from app.common.errors import Busy
from app.common.models import uuid7
from app.gate.limiter import limiter_of, outstanding, slot
from tests.unit.chat.test_planning import TARGET

PAYER = Payer(team_id=uuid7(), account_id=uuid7())


@pytest.mark.parametrize("steps", range(6))
def test_a_stop_that_comes_together_with_the_slot_is_not_lost(steps: int) -> None:
    async def story() -> tuple[bool, int, int]:
        target = replace(TARGET, slots=1)
        waits: list[float] = []

        async def wait() -> None:
            async with slot(target, lane="interactive", payer=PAYER, waited=waits.append):
                await asyncio.sleep(3600)

        held = slot(target, lane="interactive", payer=PAYER, waited=waits.append)
        await held.__aenter__()
        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await held.__aexit__(None, None, None)
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        done, _ = await asyncio.wait({waiting}, timeout=2)
        assert len(waits) == 2
        return (
            bool(done) and waiting.cancelled(),
            limiter_of(target).running,
            outstanding(target.deployment_id),
        )

    assert asyncio.run(story()) == (True, 0, 0)


class Line:
    """Calls that come one after another and are let go one after another."""

    def __init__(self, slots: int) -> None:
        self.target = replace(TARGET, deployment_id=uuid7(), slots=slots)
        self.order: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    async def come(self, name: str, *, payer: Payer = PAYER, lane: str = "interactive") -> None:
        self.gates[name] = asyncio.Event()

        async def call() -> None:
            async with slot(self.target, lane=lane, payer=payer, waited=lambda _: None):
                self.order.append(name)
                await self.gates[name].wait()

        self.tasks[name] = asyncio.create_task(call())
        await asyncio.sleep(0)

    async def go(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()
            await self.tasks[name]
            await asyncio.sleep(0)


def test_one_slot_goes_round_over_teams_then_people() -> None:
    async def story() -> list[str]:
        line = Line(1)
        greedy, other = uuid7(), uuid7()
        ann, bob = Payer(team_id=greedy, account_id=uuid7()), Payer(team_id=greedy, account_id=uuid7())
        await line.come("first", payer=ann)
        for name, payer in (("ann1", ann), ("ann2", ann), ("bob", bob), ("guest", Payer(team_id=other))):
            await line.come(name, payer=payer)
        assert outstanding(line.target.deployment_id) == 5
        await line.go("first", "ann1", "guest", "bob", "ann2")
        return line.order

    assert asyncio.run(story()) == ["first", "ann1", "guest", "bob", "ann2"]


def test_background_never_takes_the_last_slot() -> None:
    async def story() -> list[str]:
        line = Line(2)
        for name in ("batch1", "batch2"):
            await line.come(name, lane="background")
        await line.come("person")
        started = list(line.order)
        await line.go("person", "batch1", "batch2")
        return started

    assert asyncio.run(story()) == ["batch1", "person"]


def test_a_row_that_gets_more_slots_lets_the_line_in() -> None:
    async def story() -> list[str]:
        line = Line(1)
        await line.come("a")
        await line.come("b")
        assert line.order == ["a"]
        line.target = replace(line.target, slots=3)
        await line.come("c")
        await asyncio.sleep(0)
        started = sorted(line.order)
        await line.go("a", "b", "c")
        return started

    assert asyncio.run(story()) == ["a", "b", "c"]


@pytest.mark.parametrize(("purpose", "part"), [("chat", "chat server"), ("embedding", "embedder")])
def test_who_waits_too_long_is_told_the_place_and_when_to_come_back(
    settings, purpose: str, part: str
) -> None:
    settings.QUEUE_WAIT_SECONDS = 0.01

    async def story() -> Busy:
        line = Line(1)
        line.target = replace(line.target, purpose=purpose)
        await line.come("earlier")
        await line.go("earlier")
        await line.come("long")
        await line.come("ahead")
        with pytest.raises(Busy) as caught:
            async with slot(line.target, lane="interactive", payer=PAYER, waited=lambda _: None):
                pass
        await line.go("long")
        await asyncio.wait([line.tasks["ahead"]])
        return caught.value

    busy = asyncio.run(story())
    assert (busy.status, busy.name, busy.retryable) == (503, "busy", True)
    assert busy.detail == {"part": part, "position": 2, "expected_wait_s": 0.0, "slots": 1}
    assert busy.retry_after == 1.0

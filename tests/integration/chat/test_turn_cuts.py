"""Stopped after any number of steps, or without its database at any of them, a turn ends once and holds nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError

from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.chat.models import Turn
from app.chat.runs import Runs
from app.chat.turn import take_turn
from app.chat.types import Ask
from app.common import aio, db
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.testing.fault_server import FaultServer
from tests.integration.chat.conftest import Taken
from tests.integration.chat.upstream import answered, said

pytestmark = pytest.mark.django_db(transaction=True)
Gather = Callable[..., Ask]


def stopped_after(ask: Ask, steps: int) -> Taken:
    async def story() -> Taken:
        async with FaultServer(replace(said("One two three."), gap_s=0.01)) as server:
            target = replace(
                ask.targets[0], kind="openai", base_url=f"{server.url}/v1", is_demonstration=False
            )
            asked = replace(ask, targets=(target,))
            run = Runs().start(ask.turn_id, lambda run: take_turn(asked, run), replayable=False)
            taken = Taken(asked, run)
            assert run.task is not None
            for _ in range(steps):
                await asyncio.sleep(0)
            run.signal.stop("stopped")
            async for batch in run.log.follow():
                taken.events += batch
            await run.task
            await client_close()
            await redis_close()
            return taken

    return async_to_sync(story)()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("steps", [*range(14), *range(14, 60, 4), 100, 200, 400, 1000])
def test_a_stop_after_any_number_of_steps_ends_everything_once(
    gather: Gather, steps: int, keep: bool
) -> None:
    ask = gather("Say")
    ask = ask if keep else replace(ask, keep=False, conversation_id=None)
    taken = stopped_after(ask, steps)
    ends = [name for name in taken.names if name in {"done", "error"}]
    assert ends == ["done"]
    assert taken.names[-1] == "done"
    assert not Reservation.objects.filter(state="held").exists()
    text = "".join(d.get("text", "") for d in taken.named("delta"))
    row = Turn.objects.filter(id=ask.turn_id).first()
    if row is not None:
        assert row.state in {"stopped", "done"}
        assert row.answer == text
    assert UsageAttempt.objects.count() <= 1
    assert LedgerEntry.objects.count() <= UsageAttempt.objects.count()
    if text:
        assert UsageAttempt.objects.count() == 1
        assert "usage" in taken.names


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("first", range(6))
def test_a_database_that_is_away_at_any_step_costs_no_booking(
    gather: Gather, monkeypatch: pytest.MonkeyPatch, first: int, length: int
) -> None:
    ask = gather("Say")
    real, calls = db._attempt, []

    def flaky(fn: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(fn)
        if first <= len(calls) - 1 < first + length:
            raise db._unavailable() from OperationalError("away")
        return real(fn, *args, **kwargs)

    monkeypatch.setattr(db, "_attempt", flaky)
    monkeypatch.setattr(aio, "PATIENCE", (0, 0, 0))
    taken = answered(ask, said("ab"))
    assert taken.names[-1] in {"done", "error"}
    assert not Reservation.objects.filter(state="held").exists()
    if "delta" in taken.names:
        assert Reservation.objects.get().state == "settled"
        assert Turn.objects.get(id=ask.turn_id).answer == "ab"
        assert taken.names[-2:] == ["usage", "done"]
    else:
        assert taken.run.failure is not None
        assert taken.run.failure.code == "database_unavailable"

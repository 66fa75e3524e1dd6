"""Embedding calls that do not belong to a turn: booked whatever happens, and nobody else's stream waits for them."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError

from app.billing.models import Reservation, UsageAttempt
from app.billing.types import Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, targets
from app.common import aio, db
from app.gate.clients import client_close
from app.gate.embedding import embed_plain
from inference_client.testing.fault_server import FaultServer, Script

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def target(servers: None) -> Target:
    return targets(Deployment.Purpose.EMBEDDING.value)[0]


def embedded(target: Target, *scripts: Script, texts: list[str], payer: Payer) -> Any:
    async def story() -> Any:
        async with FaultServer(*scripts) as server:
            there = replace(target, kind="openai", base_url=f"{server.url}/v1")
            try:
                return await embed_plain(there, texts, payer=payer)
            finally:
                await client_close()

    return async_to_sync(story)()


def test_a_database_that_is_away_after_the_call_does_not_lose_it(
    target: Target, team: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = db._attempt, []

    def flaky(fn: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(fn)
        if len(calls) in {2, 3}:
            raise db._unavailable() from OperationalError("away")
        return real(fn, *args, **kwargs)

    monkeypatch.setattr(db, "_attempt", flaky)
    monkeypatch.setattr(aio, "PATIENCE", (0, 0, 0))
    answer = embedded(target, Script(), texts=["one", "two"], payer=Payer(team_id=team.id))
    assert len(answer.vectors) == 2
    assert Reservation.objects.get().state == "settled"
    assert UsageAttempt.objects.count() == 1


def test_counting_long_inputs_leaves_the_loop_free(target: Target, team: Any) -> None:
    from app.gate import embedding as module

    async def longest_gap() -> tuple[float, float]:
        gaps, running = [0.0], True

        async def watch() -> None:
            before = time.perf_counter()
            while running:
                await asyncio.sleep(0)
                now = time.perf_counter()
                gaps.append(now - before)
                before = now

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        began = time.perf_counter()
        await module.input_tokens(target, ["汉字" * 400_000])
        whole = time.perf_counter() - began
        running = False
        await watching
        return max(gaps), whole

    gap, whole = asyncio.run(longest_gap())
    assert gap < whole / 2

"""However a call ends, its place is free, its tokens are corrected and nothing stays held."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync
from django.db import DataError
from pytest_django import Settings

from app.billing.models import Reservation
from app.billing.prices import price_set
from app.billing.rate_limits import rate_limit_set
from app.billing.types import Attempt, Buckets, Held, Payer
from app.common.db import run_db
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate import rates
from app.gate.admission import Admission
from app.gate.services import reservation_open, reserve
from app.gate.types import CallPlan
from tests.integration.billing.conftest import PRICE
from tests.unit.chat.test_planning import TARGET

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _fresh(broker: redis.Redis, settings: Settings) -> Iterator[None]:
    settings.RATE_KEY_REQUESTS = settings.RATE_KEY_TOKENS = 0
    settings.ALLOW_UNLIMITED_SPEND = True
    rates.forget()
    yield
    rates.forget()


@pytest.fixture
def plan() -> Callable[[], CallPlan]:
    key = uuid7()
    price_set(price_key=TARGET.price_key, rates=PRICE, approved_by="tests")
    rate_limit_set(scope="key", key_id=key, requests=None, tokens=200, streams=1)
    rates.forget()

    def make() -> CallPlan:
        payer = Payer(team_id=uuid7(), account_id=None, key_id=key)
        return CallPlan(
            reservation_id=uuid7(), payer=payer, kind="chat", targets=(TARGET,), input_tokens=100, output_tokens=100,
            rated=True,
        )  # fmt: skip

    return make


def run(story: Callable[[], Any]) -> Any:
    async def whole() -> Any:
        try:
            return await story()
        finally:
            await redis_close()

    return async_to_sync(whole)()


def spent(**changes: Any) -> Attempt:
    return replace(
        Attempt(number=1, buckets=Buckets(input=20, output=10), price_key=TARGET.price_key), **changes
    )


async def corrected(admission: Admission) -> bool:
    """Whether 30 used tokens stand in place of the 200 that were charged, and the place is free."""
    payer = admission.plan.payer
    stands = await rates.peek(payer)
    await run_db(
        partial(rate_limit_set, scope="key", key_id=payer.key_id, requests=None, tokens=None, streams=1)
    )
    rates.forget()
    ticket = await rates.admit(admission.plan)
    assert ticket is not None
    await ticket.give_back()
    return (stands[0].tokens or 0) >= 170


def test_a_call_whose_booking_is_refused_gives_its_place_back(plan: Callable[[], CallPlan]) -> None:
    async def story() -> bool:
        admission = await reserve(plan())
        admission.attempts.append(spent(local_input_tokens=2**70))
        with pytest.raises(DataError):
            await admission.end()
        return await corrected(admission)

    assert run(story)


def test_a_call_that_is_cancelled_while_it_is_booked_gives_its_place_back(
    plan: Callable[[], CallPlan],
) -> None:
    async def story() -> bool:
        admission = await reserve(plan())
        admission.attempts.append(spent())
        task = asyncio.ensure_future(admission.end())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await corrected(admission)

    assert run(story)
    assert Reservation.objects.get().state == "settled"


def test_a_caller_that_leaves_while_its_hold_is_written_leaves_nothing_held(
    plan: Callable[[], CallPlan],
) -> None:
    async def story() -> None:
        loop, item = asyncio.get_running_loop(), plan()

        def leaving() -> Held:
            loop.call_soon_threadsafe(task.cancel)
            return reservation_open(item)

        task = asyncio.ensure_future(reserve(item, opening=partial(leaving)))
        with pytest.raises(asyncio.CancelledError):
            await task
        ticket = await rates.admit(plan())
        assert ticket is not None
        await ticket.give_back()

    run(story)
    assert [r.state for r in Reservation.objects.all()] == ["released"]

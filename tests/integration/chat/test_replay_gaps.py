"""A reader of another process's copy gets the whole text once, whatever happened to the broker meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import redis
from asgiref.sync import async_to_sync
from pytest_django import Settings

from app.accounts.selectors import Caller
from app.api.stream import sending, turns
from app.chat import event_store
from app.chat.event_store import EventsMissing, EventStore, events_key
from app.chat.events import TurnEvent, parsed
from app.chat.models import Conversation
from app.chat.runs import STOP_CHANNEL, Run, Runs
from app.common.models import uuid7
from app.common.redis_door import async_redis, redis_close
from tests.factories import turn_make


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store, "_BLOCK_MS", 50)


async def written(store: EventStore, turn_id: UUID, *events: TurnEvent) -> None:
    for event in events:
        store.append(turn_id, event)
    await store.drained()


def delta(number: int) -> TurnEvent:
    return TurnEvent(number, "delta", {"text": f"word{number} "})


async def read(store: EventStore, turn_id: UUID, after: int = 0) -> list[Any]:
    found: list[Any] = []
    async for batch in store.follow(turn_id, after):
        for frames in batch:
            found += parsed(frames)
        if not batch:
            break
    await redis_close()
    return found


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_gap_is_never_read_over(broker: redis.Redis, after: int) -> None:
    async def story() -> None:
        store, turn_id = EventStore(), uuid7()
        await written(store, turn_id, TurnEvent(1, "turn", {}), delta(2))
        await written(store, turn_id, delta(4), TurnEvent(5, "done", {}))
        await read(store, turn_id, after)

    with pytest.raises(EventsMissing):
        async_to_sync(story)()


def test_a_reader_who_already_has_what_is_missing_reads_on(broker: redis.Redis) -> None:
    async def story() -> list[Any]:
        store, turn_id = EventStore(), uuid7()
        await written(store, turn_id, TurnEvent(1, "turn", {}))
        await written(store, turn_id, delta(3), TurnEvent(4, "done", {}))
        return await read(store, turn_id, after=2)

    assert [name for name, _ in async_to_sync(story)()] == ["delta", "done"]


def test_a_broker_that_was_emptied_in_mid_turn_costs_the_reader_nothing(
    broker: redis.Redis, caller: Caller, db: None
) -> None:
    conversation = Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)
    turn = turn_make(conversation=conversation, answer="word2 word3 ")

    async def story() -> list[Any]:
        store = EventStore()
        await written(store, turn.id, TurnEvent(1, "turn", {}), delta(2))
        await async_redis().delete(events_key(turn.id))
        await written(store, turn.id, delta(3), TurnEvent(4, "done", {}))
        found: list[Any] = []
        async for frames in turns._replayed(store, caller, turn.id, 0):
            found += parsed(frames)
        await redis_close()
        return found

    found = async_to_sync(story)()
    assert [d for name, d in found if name == "delta"] == [{"text": "word2 word3 ", "replace": True}]
    assert found[-1][0] == "done"


def test_what_the_broker_refuses_is_known_to_be_missing(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> bool:
        store, turn_id = EventStore(), uuid7()
        broker.set(events_key(turn_id), "not a stream")
        await written(store, turn_id, TurnEvent(1, "turn", {}))
        known = store.available
        await redis_close()
        return known

    assert async_to_sync(story)() is False


def test_a_reader_who_leaves_gives_the_brokers_connection_back(broker: redis.Redis) -> None:
    """The turn runs elsewhere and says nothing for a long time."""

    class Silent:
        async def write(self, data: bytes) -> None: ...

    async def story() -> int:
        closed: list[int] = []

        async def frames() -> AsyncIterator[bytes]:
            try:
                await asyncio.sleep(3600)
                yield b""
            finally:
                closed.append(1)

        before = len(asyncio.all_tasks())
        await asyncio.wait_for(
            sending._copy(Silent(), frames(), asyncio.ensure_future(asyncio.sleep(0.05))), 5
        )
        assert len(asyncio.all_tasks()) <= before + 1
        return len(closed)

    assert asyncio.run(story()) == 1


def test_garbage_among_stop_requests_does_not_end_the_listening(broker: redis.Redis) -> None:
    async def story() -> bool:
        here = Runs()
        began = asyncio.Event()

        async def work(run: Run) -> None:
            began.set()
            async with run.signal:
                await asyncio.sleep(30)

        await here.listen()
        turn_id = uuid7()
        run = here.start(turn_id, work, replayable=False)
        await began.wait()
        while not (await async_redis().pubsub_numsub(STOP_CHANNEL))[0][1]:  # noqa: ASYNC110 - the broker's fact
            await asyncio.sleep(0.01)
        await async_redis().publish(STOP_CHANNEL, b"\xffgarbage")
        await async_redis().publish(STOP_CHANNEL, str(turn_id))
        assert run.task is not None
        await asyncio.wait({run.task}, timeout=5)
        stopped = run.signal.reason == "stopped"
        assert here._listener is not None
        here._listener.cancel()
        await asyncio.gather(run.task, here._listener, return_exceptions=True)
        await redis_close()
        return stopped

    assert asyncio.run(story())


def test_the_first_turn_without_a_broker_already_knows(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    async def story() -> bool:
        known = await EventStore().probe()
        await redis_close()
        return known

    assert asyncio.run(story()) is False

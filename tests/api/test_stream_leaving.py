"""A `/v1` caller who leaves stops the turn and pays for what was said; a chat reader who leaves stops nothing."""

import asyncio
import gc
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from app.accounts.selectors import Caller
from app.api.stream import handler
from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.chat import runs as known_runs
from app.chat import showing
from app.chat.models import Conversation, Turn
from app.chat.runs import runs
from app.chat.timings import timings_write
from app.common.db import run_db
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import FaultServer, Script, Seen
from tests.api.scripted import bearer, call, scripted_port
from tests.factories import IssuedKey
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db(transaction=True)
LEAVERS = 8
OF_TIMERS = {"_Storage", "hamt_bitmap_node", "hamt_array_node", "Context", "TimerHandle"}
"""What asyncio keeps of a timer that was cancelled, until it would have been due."""
WORDS = ("One", " two", " three", " four.")
SLOW = Script(answer=Answer(words=WORDS), gap_s=0.2)
Leave = Callable[[list[bytes], list[Seen]], bool]


def left(
    path: str, body: dict[str, Any], key: IssuedKey, *, when: Leave, script: Script = SLOW
) -> list[bytes]:
    """What a caller got who leaves `when` says so; the turn is then waited for."""
    port = scripted_port()
    got: list[bytes] = []

    async def story() -> None:
        async with FaultServer(script, port=port) as server:
            await read(path, body, key, got, gone=lambda: when(got, server.seen))
            await runs().store.drained()
            await client_close()
            await redis_close()

    async_to_sync(story)()
    return got


async def read(
    path: str, body: dict[str, Any], key: IssuedKey, got: list[bytes], *, gone: Callable[[], bool]
) -> None:
    """One caller, who leaves once `gone()`; every turn is then waited for."""
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "scheme": "http", "http_version": "1.1", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", bearer(key)["Authorization"].encode())],
    }  # fmt: skip
    asked = False

    async def receive() -> Any:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
        while not gone():  # noqa: ASYNC110 - what the server saw
            await asyncio.sleep(0.005)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            got.append(message["body"])

    found = handler.route(scope)
    assert found is not None
    await asyncio.wait_for(handler.handle(scope, receive, send, found), 20)
    if tasks := [run.task for run in runs()._by_id.values() if run.task is not None]:
        await asyncio.wait(tasks)


WHEN = {
    "at once": lambda got, seen: True,
    "while the server reads": lambda got, seen: bool(seen),
    # The fourth piece is on its way, so the first words have arrived.
    "while it speaks": lambda got, seen: bool(seen) and seen[0].sent > 600,
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("when", WHEN)
def test_leaving_v1_ends_the_call_and_its_hold(
    chat_target: Any, api_key: IssuedKey, when: str, streamed: bool
) -> None:
    body = {
        "model": chat_target.public_name,
        "messages": [{"role": "user", "content": "Say hello."}],
        "stream": streamed,
    }
    left("/v1/chat/completions", body, api_key, when=WHEN[when])
    assert not Reservation.objects.filter(state="held").exists()
    assert UsageAttempt.objects.count() == (0 if when == "at once" else 1)
    if when == "while it speaks":
        attempt = UsageAttempt.objects.get()
        assert (attempt.outcome, attempt.estimate_reason) == ("stopped", "client_gone")
        assert LedgerEntry.objects.get().price > 0


@pytest.mark.parametrize("when", WHEN)
def test_leaving_a_chat_stops_nothing(
    caller: Caller, chat_target: Any, api_key: IssuedKey, when: str
) -> None:
    conversation = Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)
    body = {"text": "Say hello.", "collections": []}
    left(f"/api/v1/conversations/{conversation.id}/turns/", body, api_key, when=WHEN[when])
    turn = Turn.objects.get()
    assert (turn.state, turn.answer) == ("done", "".join(WORDS))
    assert Reservation.objects.get().state == "settled"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_mistake_at_the_very_end_is_never_a_200_without_an_end(
    chat_target: Any, api_key: IssuedKey, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(showing, "usage", broken)
    body = {
        "model": chat_target.public_name,
        "messages": [{"role": "user", "content": "x"}],
        "stream": streamed,
    }
    response, _ = call("POST", "/v1/chat/completions", said("ab"), key=api_key, json=body)
    assert not Reservation.objects.filter(state="held").exists()
    if streamed:
        assert '"code":"internal"' in response.text
        assert response.text.endswith("data: [DONE]\n\n")
    else:
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Test runners keep every line for their report."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize("way", ["/v1", "chat"])
def test_readers_who_leave_leave_nothing_in_memory(
    caller: Caller,
    chat_target: Any,
    api_key: IssuedKey,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    monkeypatch.setattr(known_runs, "KEEP_SECONDS", 0.0)
    path, body = "/v1/chat/completions", {
        "model": chat_target.public_name,
        "messages": [{"role": "user", "content": "Say hello."}],
        "stream": True,
    }  # fmt: skip
    if way == "chat":
        conversation = Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)
        path, body = f"/api/v1/conversations/{conversation.id}/turns/", {"text": "Say hello.", "parent": None}
    port, quick = scripted_port(), Script(answer=Answer(words=WORDS), gap_s=0.02)

    async def kept(server: FaultServer, leavers: int) -> Counter[str]:
        """Objects of each kind once so many have come and left in the middle, and what waits was written."""
        for _ in range(leavers):
            got: list[bytes] = []
            await read(path, body, api_key, got, gone=lambda got=got: b"One" in b"".join(got))  # type: ignore[misc]
            await runs().store.drained()
        await run_db(timings_write)
        server.seen.clear()
        gc.collect()
        return Counter(type(found).__qualname__ for found in gc.get_objects())

    async def story() -> tuple[Counter[str], Counter[str]]:
        async with FaultServer(quick, port=port) as server:
            first, second, third = [await kept(server, leavers) for leavers in (4, LEAVERS, LEAVERS)]
            await client_close()
            await redis_close()
            return second - first, third - second

    # Twice, since a module that is imported for the first time on the way stays, too, but comes once.
    once, again = async_to_sync(story)()
    assert {kind for kind in again if min(once[kind], again[kind]) >= LEAVERS} <= OF_TIMERS

"""A `/v1` caller who leaves stops the turn and pays for what was said; a chat reader who leaves stops nothing."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from app.accounts.selectors import Caller
from app.api.stream import handler
from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.chat import showing
from app.chat.models import Conversation, Turn
from app.chat.runs import runs
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import FaultServer, Script, Seen
from tests.api.scripted import bearer, call, scripted_port
from tests.factories import IssuedKey
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = ("One", " two", " three", " four.")
SLOW = Script(answer=Answer(words=WORDS), gap_s=0.2)
Leave = Callable[[list[bytes], list[Seen]], bool]


def left(
    path: str, body: dict[str, Any], key: IssuedKey, *, when: Leave, script: Script = SLOW
) -> list[bytes]:
    """What a caller got who leaves `when` says so; the turn is then waited for."""
    port = scripted_port()
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "scheme": "http", "http_version": "1.1", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", bearer(key)["Authorization"].encode())],
    }  # fmt: skip
    got: list[bytes] = []

    async def story() -> None:
        async with FaultServer(script, port=port) as server:
            asked = False

            async def receive() -> Any:
                nonlocal asked
                if not asked:
                    asked = True
                    return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
                while not when(got, server.seen):  # noqa: ASYNC110 - what the server saw
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
            await runs().store.drained()
            await client_close()
            await redis_close()

    async_to_sync(story)()
    return got


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

"""Whoever may not go on is cut off in mid-stream: revoked, suspended, out of the team."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from app.accounts.models import Membership, User
from app.accounts.services import key_revoke
from app.api.stream import handler, openai_chat
from app.api.stream.auth import _known_key
from app.billing.models import LedgerEntry, Reservation
from app.chat.models import Conversation, Turn, TurnState
from app.chat.runs import runs
from app.common.db import run_db
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.testing.fault_server import FaultServer, Script
from tests.api.scripted import bearer, call, scripted_port
from tests.factories import IssuedKey, turn_make
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db(transaction=True)
SLOW = Script(body=said("One").body[:1], ending="hang")
"""Says one word and then nothing for ever: only who ends the call sees its end."""

CLOSED = b"(closed)"
"""Stands for the last chunk of an answer."""

ENDS: dict[str, Callable[[IssuedKey], object]] = {
    "revoked": lambda key: key_revoke(key=key.row),
    "suspended": lambda key: User.objects.filter(id=key.row.user_id).update(is_active=False),
    "removed": lambda key: Membership.objects.filter(
        user_id=key.row.user_id, team_id=key.row.team_id
    ).delete(),
}


async def _request(
    method: str, path: str, key: IssuedKey, body: dict[str, Any] | None, got: list[bytes]
) -> None:
    """One request whose caller stays to the end; what it is sent goes into `got`."""
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "scheme": "http", "http_version": "1.1", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", bearer(key)["Authorization"].encode())],
    }  # fmt: skip
    sent = [{"type": "http.request", "body": json.dumps(body or {}).encode(), "more_body": False}]

    async def receive() -> Any:
        return sent.pop() if sent else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        got.append(message.get("body", b"") or str(message.get("status", "")).encode())
        if message.get("more_body") is False:
            got.append(CLOSED)

    found = handler.route(scope)
    assert found is not None
    await handler.handle(scope, receive, send, found)


async def _until(got: list[bytes], words: bytes) -> None:
    async with asyncio.timeout(30):
        while words not in b"".join(got):  # noqa: ASYNC110 - what a reader was sent
            await asyncio.sleep(0.005)


def _story(path: str, body: dict[str, Any], key: IssuedKey, end: str) -> tuple[bytes, bytes]:
    """What the asker and a second reader of the same turn were sent."""
    port = scripted_port()
    asked: list[bytes] = []
    read: list[bytes] = []

    async def story() -> None:
        async with FaultServer(SLOW, port=port):
            tasks = [asyncio.ensure_future(_request("POST", path, key, body, asked))]
            await _until(asked, b"One")
            if not path.startswith("/v1/"):
                turn = runs().running()[0].log.turn_id
                events = f"/api/v1/turns/{turn}/events/"
                tasks.append(asyncio.ensure_future(_request("GET", events, key, None, read)))
                await _until(read, b"One")
            await runs().watch.look()
            assert not any(task.done() for task in tasks)
            await run_db(ENDS[end], key)
            await runs().watch.look()
            await asyncio.wait_for(asyncio.gather(*tasks), 20)
            await runs().store.drained()
            await client_close()
            await redis_close()

    async_to_sync(story)()
    return b"".join(asked), b"".join(read)


@pytest.mark.parametrize("end", ENDS)
def test_a_turn_ends_with_what_was_written_and_is_booked(chat_target, api_key, end):
    conversation = Conversation.objects.create(team_id=api_key.row.team_id, owner_id=api_key.row.user_id)
    path = f"/api/v1/conversations/{conversation.id}/turns/"
    asked, read = _story(path, {"text": "Count.", "collections": []}, api_key, end)
    for shown in (asked, read):
        assert shown.count(b'"text":"One"') == 1
        assert b"event: error" in shown
        assert b'"code":"not_authenticated"' in shown
        assert b"event: done" not in shown
        assert shown.count(b"event: error") == 1
        assert shown.endswith(b"\n\n" + CLOSED)
    turn = Turn.objects.get()
    assert (turn.state, turn.answer, turn.error["code"]) == ("failed", "One", "not_authenticated")
    assert not Reservation.objects.filter(state="held").exists()
    assert LedgerEntry.objects.get().price > 0


def test_a_call_of_v1_ends_with_an_error_in_openais_shape(chat_target, api_key):
    body = {"model": chat_target.public_name, "messages": [{"role": "user", "content": "x"}], "stream": True}
    asked, _ = _story("/v1/chat/completions", body, api_key, "revoked")
    assert b'"content":"One"' in asked
    assert b"no longer valid" in asked
    assert asked.endswith(b"data: [DONE]\n\n" + CLOSED)
    assert LedgerEntry.objects.count() == 1


LATER = {
    "its row was erased": (lambda turn: Turn.objects.filter(id=turn.id).delete(), b"not_found"),
    "its reader was suspended": (
        lambda turn: User.objects.filter(id=turn.asked_by_id).update(is_active=False),
        b"not_authenticated",
    ),
}


@pytest.mark.parametrize("case", LATER)
def test_a_reader_of_another_process_s_turn_is_told_an_end(api_key, case):
    """A turn that runs elsewhere, and nobody there to write its end."""
    later, code = LATER[case]
    conversation = Conversation.objects.create(team_id=api_key.row.team_id, owner_id=api_key.row.user_id)
    turn = turn_make(conversation=conversation, state=TurnState.RUNNING, ended_at=None)
    read: list[bytes] = []

    async def story() -> None:
        task = asyncio.ensure_future(_request("GET", f"/api/v1/turns/{turn.id}/events/", api_key, None, read))
        await _until(read, b"200")
        await run_db(later, turn)
        await runs().watch.look()
        await asyncio.wait_for(task, 20)
        await redis_close()

    async_to_sync(story)()
    shown = b"".join(read)
    assert shown.count(b"event: error") == 1
    assert b'"code":"%s"' % code in shown
    assert shown.endswith(b"\n\n" + CLOSED)


def test_a_mistake_in_mid_stream_of_v1_is_told_in_openais_shape(chat_target, api_key, monkeypatch):
    def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(openai_chat._Chunks, "last", broken)
    body = {"model": chat_target.public_name, "messages": [{"role": "user", "content": "x"}], "stream": True}
    response, _ = call("POST", "/v1/chat/completions", said("ab"), key=api_key, json=body)
    assert '"code":"internal"' in response.text
    assert response.text.endswith("data: [DONE]\n\n")


def _models(key: IssuedKey) -> bytes:
    """The status of a plain request on a stream route."""
    _known_key.forget()
    got: list[bytes] = []

    async def story() -> None:
        await _request("GET", "/v1/models", key, None, got)
        await redis_close()

    async_to_sync(story)()
    return got[0]


def test_a_stream_route_reads_where_a_key_may_come_from_and_notes_its_use(chat_target, api_key):
    assert _models(api_key) == b"200"
    api_key.row.refresh_from_db()
    assert api_key.row.last_used_at is not None
    api_key.row.networks = ["203.0.113.0/24"]
    api_key.row.save()
    assert _models(api_key) == b"403"

"""The stream routes as ASGI serves them: who gets in, what a turn sends, what a repeat gets."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.test import Client

from app.accounts.models import Team, User
from app.accounts.selectors import Caller
from app.api.stream.handler import handle, route
from app.billing.models import LedgerEntry, Reservation
from app.billing.services import budget_set
from app.chat.models import Conversation, Turn
from app.chat.runs import runs
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from tests.api.scripted import call as scripted_call
from tests.factories import PASSWORD, IssuedKey, key_make, team_make, user_make

pytestmark = pytest.mark.django_db


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The stream tier alone: what it does not route is nobody's here."""
    found = route(scope)
    assert found is not None, f"{scope['method']} {scope['path']} is no stream route"
    await handle(scope, receive, send, found)


def call(method: str, path: str, **wishes: Any) -> httpx.Response:
    async def one() -> httpx.Response:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=120) as client:
            response = await client.request(method, path, **wishes)
        await runs().store.drained()
        await client_close()
        await redis_close()
        return response

    return async_to_sync(one)()


def bearer(key: IssuedKey | str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key if isinstance(key, str) else key.plain}"}


def events(response: httpx.Response) -> list[tuple[int, str, dict[str, Any]]]:
    found = []
    for block in response.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
        if lines:
            found.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return found


@pytest.fixture
def conversation(caller: Caller, chat_target: object) -> Conversation:
    return Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)


@pytest.fixture
def post(conversation: Conversation, api_key: IssuedKey) -> Callable[..., httpx.Response]:
    def send(body: dict[str, Any], **headers: str) -> httpx.Response:
        path = f"/api/v1/conversations/{conversation.id}/turns/"
        wishes = {"max_output_tokens": 12, "collections": [], **body}
        return call("POST", path, json=wishes, headers=bearer(api_key) | headers)

    return send


def test_a_turn_is_a_stream_of_numbered_events_that_ends_once(post: Callable[..., httpx.Response]) -> None:
    response = post({"text": "Say hello."})
    found = events(response)
    names = [name for _, name, _ in found]
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert [number for number, *_ in found] == list(range(1, len(found) + 1))
    assert names[0] == "turn"
    assert names[-2:] == ["usage", "done"]
    assert names.count("done") + names.count("error") == 1
    assert response.headers["location"] == f"/api/v1/turns/{found[0][2]['turn_id']}/"


def test_the_same_turn_as_one_json(post: Callable[..., httpx.Response]) -> None:
    answer = post({"text": "Say hello.", "stream": False}).json()
    turn = Turn.objects.get(id=answer["turn_id"])
    assert (answer["role"], answer["text"], answer["state"]) == ("assistant", turn.answer, "done")
    assert answer["price"]["currency"] == settings.CURRENCY


def test_what_came_out_of_the_servers_cache_is_told_with_the_usage(
    conversation: Conversation, api_key: IssuedKey
) -> None:
    answer = Script(answer=Answer(words=("Yes",), input_tokens=40, cache_read=24))
    path, body = f"/api/v1/conversations/{conversation.id}/turns/", {"text": "Hello.", "stream": False}
    response, _ = scripted_call("POST", path, answer, key=api_key, json=body | {"collections": []})
    assert response.json()["usage"]["cached_input_tokens"] == 24
    assert Turn.objects.get().usage["input_tokens"] == 40


def test_a_turn_in_the_background_is_accepted_and_can_be_followed(
    post: Callable[..., httpx.Response], api_key: IssuedKey
) -> None:
    response = post({"text": "Say hello.", "background": True})
    assert response.status_code == 202
    assert response.json()["status"] == "running"
    assert Turn.objects.filter(id=response.json()["id"]).exists()


def test_a_repeated_key_gives_the_same_turn_from_the_start_and_bills_once(
    post: Callable[..., httpx.Response],
) -> None:
    first = post({"text": "Say hello."}, **{"Idempotency-Key": "once"})
    again = post({"text": "Say hello."}, **{"Idempotency-Key": "once"})
    turns = {events(r)[0][2]["turn_id"] for r in (first, again)}
    assert len(turns) == 1
    assert Turn.objects.count() == 1
    assert LedgerEntry.objects.count() == 1

    def shown(response: httpx.Response) -> str:
        return "".join(data.get("text", "") for _, name, data in events(response) if name == "delta")

    assert shown(first) == shown(again) == Turn.objects.get().answer


def test_a_repeated_key_with_another_body_is_refused(post: Callable[..., httpx.Response]) -> None:
    post({"text": "Say hello."}, **{"Idempotency-Key": "twice"})
    other = post({"text": "Say goodbye."}, **{"Idempotency-Key": "twice"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")


def test_a_refused_turn_does_not_use_its_key_up(post: Callable[..., httpx.Response], team: Team) -> None:
    budget = {"scope": "team", "unit": "money", "period": "month", "team_id": team.id}
    budget_set(limit=Decimal(0), **budget)
    assert post({"text": "Hello?"}, **{"Idempotency-Key": "later"}).status_code == 402
    budget_set(limit=Decimal(10), **budget)
    assert post({"text": "Hello?"}, **{"Idempotency-Key": "later"}).status_code == 200


def test_a_spent_budget_is_a_402_that_says_all_of_it(post: Callable[..., httpx.Response], team: Team) -> None:
    budget_set(scope="team", unit="money", limit=Decimal(0), period="month", team_id=team.id)
    refused = post({"text": "Hello?"})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (402, "budget_exhausted")
    assert {"scope", "limit", "remaining", "resets_at"} <= set(error["detail"])
    assert int(refused.headers["retry-after"]) > 0
    assert not Reservation.objects.filter(state="held").exists()


def test_events_resume_after_any_number(post: Callable[..., httpx.Response], api_key: IssuedKey) -> None:
    whole = events(post({"text": "Say hello."}))
    path = f"/api/v1/turns/{whole[0][2]['turn_id']}/events/"
    for after in range(len(whole) + 1):
        rest = events(call("GET", path, headers=bearer(api_key) | {"Last-Event-ID": str(after)}))
        assert rest == whole[after:]


def test_after_the_replay_is_gone_the_text_comes_as_one_delta_that_replaces(
    post: Callable[..., httpx.Response], api_key: IssuedKey, broker: Any
) -> None:
    turn_id = events(post({"text": "Say hello."}))[0][2]["turn_id"]
    broker.flushdb()
    found = events(call("GET", f"/api/v1/turns/{turn_id}/events/", headers=bearer(api_key)))
    deltas = [data for _, name, data in found if name == "delta"]
    assert deltas == [{"text": Turn.objects.get().answer, "replace": True}]
    assert found[-1][1] == "done"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": ""}, 422, "invalid"),
        ({"text": 7}, 422, "invalid"),
        ({"text": "x", "collections": ["no-id"]}, 422, "invalid"),
        ({"text": "x", "collections": [str(uuid7())]}, 404, "not_found"),
        ({"text": "x", "model": "no-such-model"}, 404, "model_not_found"),
        ({"text": "x", "parent": str(uuid7())}, 404, "not_found"),
        ({"text": "x", "max_output_tokens": 0}, 422, "invalid"),
        ({"text": "word " * 20_000}, 422, "context_length_exceeded"),
    ],
)
def test_bad_input_is_refused_with_its_code_and_keeps_nothing(
    post: Callable[..., httpx.Response], body: dict[str, Any], status: int, code: str
) -> None:
    refused = post(body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    assert refused.json()["error"]["request_id"] == refused.headers["x-request-id"]
    assert not Turn.objects.exists()


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"'])
def test_a_body_that_is_no_object_is_refused(
    conversation: Conversation, api_key: IssuedKey, body: bytes
) -> None:
    path = f"/api/v1/conversations/{conversation.id}/turns/"
    refused = call("POST", path, content=body, headers=bearer(api_key))
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")


def test_strangers_get_one_and_the_same_404(
    post: Callable[..., httpx.Response], conversation: Conversation
) -> None:
    turn_id = events(post({"text": "Say hello."}))[0][2]["turn_id"]
    stranger = user_make()
    key = key_make(user=stranger, team=team_make(owner=stranger))
    for method, path in (
        ("POST", f"/api/v1/conversations/{conversation.id}/turns/"),
        ("POST", f"/api/v1/conversations/{uuid7()}/turns/"),
        ("GET", f"/api/v1/turns/{turn_id}/events/"),
        ("POST", f"/api/v1/turns/{turn_id}/stop/"),
    ):
        refused = call(method, path, json={"text": "x"}, headers=bearer(key))
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("headers", [{}, bearer("tsr_wrong"), {"Authorization": "Basic abc"}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/v1/precount/"])
def test_nobody_gets_in_without_a_valid_key(path: str, headers: dict[str, str]) -> None:
    refused = call("POST", path, json={}, headers=headers)
    assert refused.status_code == 401
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_another_host_name_is_refused(api_key: IssuedKey) -> None:
    refused = call("GET", "/v1/models", headers=bearer(api_key) | {"Host": "evil.example"})
    assert refused.status_code == 400


def test_a_browser_session_needs_the_csrf_token(conversation: Conversation, user: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    assert browser.login(username=user.email, password=PASSWORD)
    session = browser.cookies["sessionid"].value
    path = f"/api/v1/conversations/{conversation.id}/turns/"
    body = {"text": "Say hello.", "max_output_tokens": 4, "collections": []}
    cookies = f"sessionid={session}; csrftoken={'a' * 32}"
    refused = call("POST", path, json=body, headers={"Cookie": cookies})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf")
    passed = call("POST", path, json=body, headers={"Cookie": cookies, "X-CSRFToken": "a" * 32})
    assert passed.status_code == 200


def test_a_viewer_cannot_spend(team: Team, conversation: Conversation) -> None:
    viewer = user_make(team=team, role="viewer")
    row = Conversation.objects.create(team=team, owner=viewer)
    key = key_make(user=viewer, team=team)
    refused = call("POST", f"/api/v1/conversations/{row.id}/turns/", json={"text": "x"}, headers=bearer(key))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")


def test_a_key_without_the_scope_cannot_chat(team: Team, user: User, conversation: Conversation) -> None:
    key = key_make(user=user, team=team, scopes=("read",))
    refused = call("POST", "/v1/chat/completions", json={}, headers=bearer(key))
    assert refused.status_code == 403


def test_the_pre_count_says_tokens_price_limits_and_verdict(
    conversation: Conversation, api_key: IssuedKey, team: Team
) -> None:
    body = {"conversation": str(conversation.id), "text": "How many tokens is this?", "collections": []}
    found = call("POST", "/api/v1/precount/", json=body, headers=bearer(api_key)).json()
    parts = found["input_tokens"]
    assert parts["total"]["max"] == sum(parts[p] for p in ("system", "history", "attachments", "draft"))
    assert parts["retrieved"] == {"expected": 0, "max": 0}
    amounts = [Decimal(found["price"][name]["amount"]) for name in ("low", "expected", "high")]
    assert amounts == sorted(amounts)
    assert amounts[0] > 0
    assert found["verdict"] == "ok"
    assert not Reservation.objects.exists()
    budget_set(scope="team", unit="money", limit=Decimal(0), period="month", team_id=team.id)
    found = call("POST", "/api/v1/precount/", json=body, headers=bearer(api_key)).json()
    assert found["verdict"] == "refused"


def test_what_a_turn_holds_is_what_the_pre_count_called_high(
    conversation: Conversation, api_key: IssuedKey, post: Callable[..., httpx.Response]
) -> None:
    body = {"conversation": str(conversation.id), "text": "Say hello.", "collections": []}
    high = call("POST", "/api/v1/precount/", json=body, headers=bearer(api_key)).json()["price"]["high"]
    found = events(post({"text": "Say hello.", "max_output_tokens": None}))
    assert found[0][2]["estimate"]["held"] == high

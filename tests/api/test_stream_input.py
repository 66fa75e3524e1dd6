"""What callers may send wrong: each gets a clear refusal, and nothing is asked, held or billed for it."""

import json
from typing import Any

import pytest
from django.test import Client

from app.accounts.models import User
from app.accounts.selectors import Caller
from app.api.models import IdempotencyKey
from app.billing.models import Reservation
from app.chat.models import Conversation, Turn
from app.common.models import uuid7
from inference_client.testing.fault_server import Script
from tests.api.scripted import bearer, call
from tests.factories import PASSWORD, IssuedKey

pytestmark = pytest.mark.django_db

HELLO = [{"role": "user", "content": "Say hello."}]
CHAT = "/v1/chat/completions"
NOBODYS = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def model(chat_target: Any) -> str:
    return str(chat_target.public_name)


@pytest.fixture
def conversation(caller: Caller, chat_target: object) -> Conversation:
    return Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)


def turns_path(conversation: Conversation) -> str:
    return f"/api/v1/conversations/{conversation.id}/turns/"


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": "hello"},
        {"messages": [7]},
        {"messages": [{"role": [], "content": "x"}]},
        {"messages": [{"role": {}, "content": "x"}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "user", "content": [7]}]},
        {"messages": [{"role": "user", "content": "x\u0000"}]},
        {"messages": [*HELLO, {"role": "assistant", "tool_calls": 7}]},
        {"messages": [*HELLO, {"role": "assistant", "tool_calls": [7]}]},
        {"messages": [*HELLO, {"role": "assistant", "tool_calls": {"a": 1}}]},
        {"messages": [*HELLO, {"role": "tool", "content": "x", "tool_call_id": 7}]},
        {"messages": [{"role": "user", "content": "x", "name": {}}]},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,é"}}],
                }
            ]
        },
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 7}]}]},
        {"model": 7},
        {"stream": "no"},
        {"stream": 1},
        {"stream": True, "stream_options": 7},
        {"stream": True, "stream_options": []},
        {"stop": 7},
        {"stop": [7]},
        {"stop": [{}]},
        {"seed": "x"},
        {"seed": 1.5},
        {"temperature": "hot"},
        {"temperature": True},
        {"top_p": []},
        {"tools": 7},
        {"tools": [7]},
        {"tools": {"a": 1}},
        {"tool_choice": 7},
        {"response_format": "json"},
        {"max_tokens": "12"},
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"max_completion_tokens": []},
        {"collections": "x"},
        {"collections": [7]},
        {"n": 2},
        {"n": {}},
        {"logprobs": []},
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_a_wrong_v1_body_is_a_400_and_asks_nobody(
    model: str, api_key: IssuedKey, wrong: dict[str, Any]
) -> None:
    body = {"model": model, "messages": HELLO, **wrong}
    response, seen = call("POST", CHAT, Script(), key=api_key, json=body)
    assert response.status_code in (400, 404), response.text
    assert response.json()["error"]["message"]
    assert seen == []
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model": NaN}',
        b"\xff\xfe",
        b'{"messages": "\xff"}',
        b'{"model": "\\ud800"}',
        b'{"seed": 1e999}',
        b"[" * 5000,
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b"null",
        b"",
    ],
)
def test_what_is_no_json_object_is_a_400(model: str, api_key: IssuedKey, raw: bytes) -> None:
    response, seen = call("POST", CHAT, Script(), key=api_key, content=raw)
    assert response.status_code == 400, response.text
    assert seen == []


def test_a_body_over_the_limit_is_a_413(model: str, api_key: IssuedKey) -> None:
    response, _ = call("POST", CHAT, Script(), key=api_key, content=b'"' + b"a" * 20_000_001)
    assert response.status_code == 413
    assert response.json()["error"]["detail"]["limit_bytes"] == 20_000_000


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ["模型", "a\r\nset-cookie: x=1", "é", "x" * 70_000])
def test_unknown_fields_of_any_name_are_ignored(
    model: str, api_key: IssuedKey, name: str, streamed: bool
) -> None:
    body = {"model": model, "messages": HELLO, "stream": streamed, name: 1, "user": "u"}
    response, _ = call("POST", CHAT, Script(), key=api_key, json=body)
    assert response.status_code == 200
    assert response.headers["x-tessera-ignored"] == "user"


def test_a_dearer_class_of_service_is_not_asked_for_in_anybodys_name(model: str, api_key: IssuedKey) -> None:
    body = {"model": model, "messages": HELLO, "service_tier": "priority", "prediction": {"content": "x"}}
    response, (seen,) = call("POST", CHAT, Script(), key=api_key, json=body)
    assert response.headers["x-tessera-ignored"] == "prediction, service_tier"
    assert {"service_tier", "prediction"}.isdisjoint(seen.json)


@pytest.mark.parametrize("wrong", [{"background": "yes"}, {"background": 1}, {"stream": "no"}, {"stream": 0}])
def test_a_wrong_form_of_answer_is_refused_before_the_turn(
    conversation: Conversation, api_key: IssuedKey, wrong: dict[str, Any]
) -> None:
    body = {"text": "Say hello.", "collections": [], **wrong}
    response, seen = call("POST", turns_path(conversation), Script(), key=api_key, json=body)
    assert (response.status_code, seen) == (422, [])
    assert not Turn.objects.exists()


@pytest.mark.parametrize("value", ["²", "-1", "1.5", "x", "9" * 5000, "9" * 30])
def test_a_last_event_id_that_is_no_event_is_refused(
    conversation: Conversation, api_key: IssuedKey, value: str
) -> None:
    turn = Turn.objects.create(
        conversation=conversation, team=conversation.team, question="q", model="m", state="done",
        started_at=conversation.created_at, heartbeat_at=conversation.created_at,
    )  # fmt: skip
    response, _ = call(
        "GET", f"/api/v1/turns/{turn.id}/events/", Script(),
        headers={**bearer(api_key), "Last-Event-ID": value.encode("latin-1")},
    )  # fmt: skip
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": "x", "collections": [NOBODYS]}, 404),
        ({"text": "x", "collections": [7]}, 422),
        ({"text": "a\u0000b", "collections": []}, 422),
        ({"text": "", "collections": []}, 422),
    ],
)
def test_a_refused_request_does_not_use_its_key_up(
    conversation: Conversation, api_key: IssuedKey, body: dict[str, Any], status: int
) -> None:
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        response, _ = call(
            "POST", turns_path(conversation), Script(), key=api_key, json=body, headers=headers
        )
        assert response.status_code == status
    assert not IdempotencyKey.objects.exists()


def test_a_key_whose_process_died_before_its_turn_is_taken_over(
    conversation: Conversation, api_key: IssuedKey
) -> None:
    body = {"text": "Say hello.", "collections": []}
    headers = {"Idempotency-Key": "once"}
    response, _ = call("POST", turns_path(conversation), Script(), key=api_key, json=body, headers=headers)
    assert response.status_code == 200
    # As a request two minutes ago left it that never got as far as a row.
    old = uuid7()
    old = type(old)(int=old.int - (3 * 60_000 << 80))
    IdempotencyKey.objects.update(resource_id=old)
    Turn.objects.all().delete()
    response, _ = call("POST", turns_path(conversation), Script(), key=api_key, json=body, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("value", [7, [], [""], [[]], [7.5], [[7, "x"]], {"a": 1}, [-1], [10**12], None, ""])
def test_wrong_embedding_inputs(chat_target: Any, api_key: IssuedKey, settings: Any, value: Any) -> None:
    body = {"model": settings.EMBEDDING_MODEL, "input": value}
    response, _ = call("POST", "/v1/embeddings", Script(), key=api_key, json=body)
    assert response.status_code in (200, 400), response.text
    assert (response.status_code == 200) == (value == [""])
    assert not Reservation.objects.filter(state="held").exists()


def test_a_multipart_post_with_a_session_is_refused_like_any_other(
    conversation: Conversation, user: User
) -> None:
    browser = Client()
    assert browser.login(username=user.email, password=PASSWORD)
    headers = {
        "Cookie": f"sessionid={browser.cookies['sessionid'].value}",
        "Content-Type": "multipart/form-data",
    }
    response, _ = call("POST", turns_path(conversation), Script(), headers=headers, content=b"x")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "csrf")


def test_what_the_server_refuses_as_invalid_is_the_callers_to_mend(model: str, api_key: IssuedKey) -> None:
    refusal = Script(
        status=400,
        body=(b'{"error": {"message": "temperature must be at most 2", "type": "invalid_request_error"}}',),
        content_type="application/json",
    )
    body = {"model": model, "messages": HELLO, "temperature": 99}
    response, _ = call("POST", CHAT, refusal, key=api_key, json=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert not Reservation.objects.filter(state="held").exists()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/embeddings/", 405),
        ("POST", "/v1/nope", 404),
        ("GET", "/v1/nope/x", 404),
        ("GET", "/v1", 404),
    ],
)
def test_what_v1_does_not_have_is_said_in_its_own_shape(
    model: str, api_key: IssuedKey, method: str, path: str, status: int
) -> None:
    response, _ = call(method, path, Script(), key=api_key)
    assert response.status_code == status
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", ["/api/v1/precount/", f"/api/v1/conversations/{NOBODYS}/turns/"])
def test_another_method_on_a_stream_route_is_a_405(model: str, api_key: IssuedKey, path: str) -> None:
    response, _ = call("GET", path, Script(), key=api_key)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["detail"]) == (
        405, "method_not_allowed", {"allowed": ["POST"]},
    )  # fmt: skip

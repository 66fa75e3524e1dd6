"""What a key or a person may not reach over the stream routes."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sessions.models import Session
from django.test import Client

from app.accounts.models import ApiKey, Membership, Team, User
from app.accounts.selectors import Caller
from app.billing.models import Reservation
from app.catalog.models import Deployment
from app.chat.event_store import EventStore
from app.chat.events import TurnEvent, parsed
from app.chat.models import Conversation, Turn
from app.common.models import uuid7
from app.common.redis_door import redis_close
from inference_client.testing.fault_server import Script
from tests.api.scripted import call
from tests.factories import PASSWORD, IssuedKey, collection_make, key_make, team_make, turn_make, user_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def turn(caller: Caller, chat_target: object) -> Turn:
    row = Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)
    return turn_make(conversation=row)


@pytest.mark.parametrize("scopes", [("embed",), ("usage",), ("write",), ()])
def test_the_text_of_a_turn_needs_a_scope_that_reads_it(
    turn: Turn, user: User, team: Team, scopes: tuple[str, ...]
) -> None:
    key = key_make(user=user, team=team, scopes=scopes)
    response, _ = call("GET", f"/api/v1/turns/{turn.id}/events/", Script(), key=key)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not_allowed")


@pytest.mark.parametrize("scopes", [("embed",), ("read",)])
def test_stopping_a_turn_needs_the_scope_to_chat(
    turn: Turn, user: User, team: Team, scopes: tuple[str, ...]
) -> None:
    key = key_make(user=user, team=team, scopes=scopes)
    response, _ = call("POST", f"/api/v1/turns/{turn.id}/stop/", Script(), key=key)
    assert response.status_code == 403


def test_a_viewer_cannot_spend_on_embeddings(team: Team, chat_target: Any, settings: Any) -> None:
    key = key_make(user=user_make(team=team, role="viewer"), team=team)
    body = {"model": settings.EMBEDDING_MODEL, "input": "x"}
    response, seen = call("POST", "/v1/embeddings", Script(), key=key, json=body)
    assert (response.status_code, seen) == (403, [])
    assert not Reservation.objects.exists()


def test_a_key_of_some_models_embeds_with_no_other(
    api_key: IssuedKey, chat_target: Any, settings: Any
) -> None:
    ApiKey.objects.filter(id=api_key.row.id).update(models_allowed=[chat_target.public_name])
    body = {"model": settings.EMBEDDING_MODEL, "input": "x"}
    response, seen = call("POST", "/v1/embeddings", Script(), key=api_key, json=body)
    assert (response.status_code, seen) == (403, [])


def test_embeddings_go_only_where_the_teams_level_may(
    api_key: IssuedKey, team: Team, chat_target: Any, settings: Any
) -> None:
    Team.objects.filter(id=team.id).update(level="private")
    Deployment.objects.filter(purpose="embedding").update(clearance="internal")
    body = {"model": settings.EMBEDDING_MODEL, "input": "x"}
    response, seen = call("POST", "/v1/embeddings", Script(), key=api_key, json=body)
    assert (response.status_code, response.json()["error"]["code"], seen) == (403, "not_cleared", [])


def test_what_is_no_key_by_its_length_is_neither_looked_up_nor_remembered(
    chat_target: Any, django_assert_num_queries: Any
) -> None:
    headers = {"Authorization": "Bearer " + "x" * 5000}
    with django_assert_num_queries(1):  # the scripted server's address, by the test itself
        response, _ = call("GET", "/v1/models", Script(), headers=headers)
    assert response.status_code == 401


def signed_in(user: User) -> dict[str, str]:
    browser = Client()
    assert browser.login(username=user.email, password=PASSWORD)
    return {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}


def suspend(user: User) -> None:
    User.objects.filter(id=user.id).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password("another password")
    user.save()


def sign_out(user: User) -> None:
    Session.objects.all().delete()


@pytest.mark.parametrize("ended", [suspend, change_password, sign_out])
def test_a_session_that_ended_reaches_nothing(turn: Turn, user: User, ended: Callable[[User], None]) -> None:
    path, headers = f"/api/v1/turns/{turn.id}/events/", signed_in(user)
    assert call("GET", path, Script(), headers=headers)[0].status_code == 200
    ended(user)
    response, _ = call("GET", path, Script(), headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "not_authenticated")


def test_who_left_the_team_reaches_no_turn_of_it_and_spends_nothing(
    turn: Turn, user: User, team: Team
) -> None:
    Membership.objects.filter(user=user, team=team).delete()
    headers = signed_in(user) | {"X-CSRFToken": "a" * 32}
    headers["Cookie"] += f"; csrftoken={'a' * 32}"
    assert call("GET", f"/api/v1/turns/{turn.id}/events/", Script(), headers=headers)[0].status_code == 404
    path = f"/api/v1/conversations/{turn.conversation_id}/turns/"
    response, seen = call("POST", path, Script(), json={"text": "x"}, headers=headers)
    assert (response.status_code, seen) == (404, [])


@pytest.mark.parametrize("model", ["other", ""])
def test_a_key_of_some_models_chats_with_no_other(
    turn: Turn, api_key: IssuedKey, chat_target: Any, model: str
) -> None:
    ApiKey.objects.filter(id=api_key.row.id).update(models_allowed=["something-else"])
    body = {"text": "x", "collections": [], **({"model": chat_target.public_name} if model else {})}
    for path, wishes in (
        (f"/api/v1/conversations/{turn.conversation_id}/turns/", body),
        (
            "/v1/chat/completions",
            {"model": chat_target.public_name, "messages": [{"role": "user", "content": "x"}]},
        ),
    ):
        response, seen = call("POST", path, Script(), key=api_key, json=wishes)
        assert response.status_code in {403, 503}
        assert seen == []


def test_a_team_that_is_not_mine_and_one_that_is_not_are_refused_alike(
    api_key: IssuedKey, chat_target: Any
) -> None:
    other = team_make(owner=user_make())
    told = set()
    for team_id in (other.id, uuid7()):
        body = {"text": "x", "team": str(team_id), "collections": []}
        response, _ = call("POST", "/api/v1/precount/", Script(), key=api_key, json=body)
        told.add((response.status_code, response.json()["error"]["message"]))
    assert len(told) == 1


@pytest.mark.parametrize("readable", [True, False])
def test_a_replay_shows_passages_only_to_who_may_read_them_now(
    turn: Turn, user: User, team: Team, api_key: IssuedKey, broker: Any, readable: bool
) -> None:
    collection = collection_make(team=team, user=user)
    item = {"n": 1, "title": "plan.txt", "text": "The secret is 4711.", "collection_id": str(collection.pk)}

    async def write() -> None:
        store = EventStore()
        for number, (name, data) in enumerate(
            [
                ("turn", {}),
                ("sources", {"items": [item, item | {"n": 2, "collection_id": str(uuid7())}]}),
                ("quotes", {"items": [item]}),
                ("delta", {"text": "See [1]."}),
                ("done", {"finish_reason": "stop"}),
            ],
            start=1,
        ):
            store.append(turn.id, TurnEvent(number, name, data))
        await store.drained()
        await redis_close()

    async_to_sync(write)()
    if not readable:
        collection.grants.all().delete()
    response, _ = call("GET", f"/api/v1/turns/{turn.id}/events/", Script(), key=api_key)
    shown = dict(
        parsed(b"".join(part + b"\n\n" for part in response.content.split(b"\n\n") if b"event:" in part))
    )
    assert [i["n"] for i in shown["sources"]["items"]] == [1, 2]
    assert [i["text"] for i in shown["sources"]["items"]] == [item["text"] if readable else "", ""]
    assert [i["text"] for i in shown["quotes"]["items"]] == ([item["text"]] if readable else [])
    assert ("4711" in response.text, "plan.txt" in response.text) == (readable, readable)
    assert shown["delta"] == {"text": "See [1]."}

"""Saved assistants: who makes, uses and changes them, and what choosing one brings."""

import json
from typing import Any

import pytest

from app.accounts.models import Role
from app.accounts.services import membership_set
from app.api.stream import auth
from app.chat import asking
from app.chat.models import Assistant, Conversation, Turn
from app.common.models import uuid7
from app.gate.routing import memories_forget
from inference_client.testing.fault_server import Script
from tests.api.scripted import call as call_once
from tests.factories import collection_make, key_make, team_make, user_make

pytestmark = pytest.mark.django_db
ASSISTANTS = "/api/v1/assistants/"


@pytest.fixture
def client(client_for: Any, api_key: Any) -> Any:
    return client_for(api_key)


@pytest.fixture
def model(chat_target: Any) -> str:
    """The name of the model there is."""
    return str(chat_target.public_name)


@pytest.fixture
def made(client: Any, model: str) -> dict[str, Any]:
    body = {"name": "Plain Speaker", "model": model, "prompt": "Answer in words of one syllable."}
    answer = client.post(ASSISTANTS, body, format="json")
    assert answer.status_code == 201, answer.json()
    return dict(answer.json())


def call(*request: Any, **wishes: Any) -> Any:
    """One call; where the server was at the call before is forgotten."""
    for memory in (asking._cached_targets, asking._cached_named, auth._known_key):
        memory.forget()  # type: ignore[union-attr]
    memories_forget()
    return call_once(*request, **wishes)


def said(text: str) -> Script:
    head = {"id": "c", "model": "m"}
    chunks = (
        {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}},
    )
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return Script(body=(*frames, b"data: [DONE]\n\n"))


def test_one_is_made_shown_changed_and_removed(client: Any, made: dict[str, Any]) -> None:
    path = f"{ASSISTANTS}{made['id']}/"
    assert (made["slug"], made["model_name"]) == ("plain-speaker", "assistant/plain-speaker")
    assert made["may_change"] is True
    assert [item["id"] for item in client.get(ASSISTANTS).json()["items"]] == [made["id"]]
    changed = client.patch(path, {"prompt": "Be brief.", "level": "internal"}, format="json").json()
    assert (changed["prompt"], changed["level"], changed["name"]) == (
        "Be brief.",
        "internal",
        "Plain Speaker",
    )
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"model": "nobody"}, 422, "model"),
        ({"name": "???"}, 422, "slug"),
        ({"name": ""}, 422, "name"),
        ({"prompt": "x" * 20_001}, 422, "prompt"),
        ({"slug": "plain-speaker"}, 409, ""),
        ({"collections": [str(uuid7())]}, 404, ""),
        ({"team": str(uuid7())}, 404, ""),
        ({"shared_with": [str(uuid7())]}, 404, ""),
    ],
)
def test_what_cannot_be_saved_says_why(
    client: Any, made: dict[str, Any], model: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = client.post(ASSISTANTS, {"name": "Other", "model": model, **body}, format="json")
    assert answer.status_code == status, answer.json()
    assert field in str(answer.json()["error"]["detail"])
    assert Assistant.objects.count() == 1


def test_a_team_uses_it_strangers_do_not_and_sharing_lets_another_team_in(
    client_for: Any, client: Any, team: Any, made: dict[str, Any]
) -> None:
    colleague = user_make(team=team)
    stranger = user_make()
    other = team_make(owner=stranger)
    theirs, strange = (
        client_for(key_make(user=colleague, team=team)),
        client_for(key_make(user=stranger, team=other)),
    )
    path = f"{ASSISTANTS}{made['id']}/"
    assert theirs.get(path).json()["may_change"] is False
    assert theirs.patch(path, {"name": "Mine"}, format="json").status_code == 403
    assert theirs.delete(path).status_code == 403
    assert strange.get(path).status_code == 404
    assert strange.post("/api/v1/conversations/", {"assistant": made["id"]}, format="json").status_code == 404
    row = Assistant.objects.get(pk=made["id"])
    row.shared_with.add(other)
    assert strange.get(path).json()["name"] == "Plain Speaker"
    assert strange.patch(path, {"name": "Mine"}, format="json").status_code == 403


def test_a_conversation_takes_what_it_says_and_remembers_it(
    client: Any, team: Any, user: Any, made: dict[str, Any], model: str
) -> None:
    shelf = collection_make(team=team, user=user, level="private")
    client.patch(
        f"{ASSISTANTS}{made['id']}/", {"collections": [str(shelf.pk)], "level": "internal"}, format="json"
    )
    begun = client.post("/api/v1/conversations/", {"assistant": made["id"]}, format="json").json()
    assert (begun["assistant"], begun["model"], begun["level"]) == (made["id"], model, "internal")
    assert begun["collections"] == [str(shelf.pk)]
    left = client.patch(f"/api/v1/conversations/{begun['id']}/", {"assistant": None}, format="json").json()
    assert left["assistant"] is None


def test_its_prompt_leads_every_question_and_counts_as_system(
    client: Any, caller: Any, api_key: Any, made: dict[str, Any]
) -> None:
    bare = Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)
    own = Conversation.objects.create(
        team_id=caller.default_team_id, owner_id=caller.user_id, assistant_id=made["id"]
    )
    counted = [
        call(
            "POST",
            "/api/v1/precount/",
            said("x"),
            key=api_key,
            json={"text": "Why?", "conversation": str(c.id)},
        )[0]
        for c in (bare, own)
    ]
    plain, led = (answer.json()["input_tokens"]["system"] for answer in counted)
    assert led > plain
    path = f"/api/v1/conversations/{own.id}/turns/"
    _, seen = call("POST", path, said("Yes."), key=api_key, json={"text": "Why?", "stream": False})
    system = seen[-1].json["messages"][0]
    assert (system["role"], "words of one syllable" in system["content"]) == ("system", True)


def test_v1_lists_it_after_the_models_and_choosing_it_brings_prompt_and_collections(
    client: Any, api_key: Any, team: Any, user: Any, made: dict[str, Any], model: str
) -> None:
    listed, _ = call("GET", "/v1/models", key=api_key)
    assert [item["id"] for item in listed.json()["data"]][-1] == "assistant/plain-speaker"
    assert call("GET", "/v1/models/assistant/plain-speaker", key=api_key)[0].json()["owned_by"] == team.name
    body = {"model": "assistant/plain-speaker", "messages": [{"role": "user", "content": "Why?"}]}
    answer, seen = call("POST", "/v1/chat/completions", said("Yes."), key=api_key, json=body)
    assert answer.status_code == 200, answer.json()
    assert [m["role"] for m in seen[-1].json["messages"]] == ["system", "user"]
    assert "words of one syllable" in seen[-1].json["messages"][0]["content"]
    assert not Turn.objects.exists()
    foreign = collection_make(team=team_make(owner=user_make()), user=user)
    Assistant.objects.update(collections=[str(foreign.pk)])
    refused, seen = call("POST", "/v1/chat/completions", said("Yes."), key=api_key, json=body)
    assert refused.status_code == 404
    assert str(foreign.pk) in refused.text
    assert seen == []
    # What is named in the call stands in place of its own.
    again, _ = call(
        "POST", "/v1/chat/completions", said("Yes."), key=api_key, json=body | {"collections": []}
    )
    assert again.status_code == 200


def test_who_leaves_the_team_cannot_ask_it_any_more(
    caller: Any, api_key: Any, made: dict[str, Any], user: Any
) -> None:
    owner = user_make()
    other = team_make(owner=owner)
    membership_set(team=other, user=user, role=Role.MEMBER)
    Assistant.objects.update(team=other)
    own = Conversation.objects.create(
        team_id=caller.default_team_id, owner_id=caller.user_id, assistant_id=made["id"]
    )
    path, body = f"/api/v1/conversations/{own.id}/turns/", {"text": "Why?", "stream": False}
    assert call("POST", path, said("Yes."), key=api_key, json=body)[0].status_code == 200
    user.memberships.filter(team=other).delete()
    refused, seen = call("POST", path, said("Yes."), key=api_key, json=body)
    assert (refused.status_code, seen) == (404, [])

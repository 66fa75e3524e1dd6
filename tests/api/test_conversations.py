"""Conversations, messages, turns, sources and feedback."""

import pytest

from app.accounts.models import Membership, Role
from app.accounts.services import key_create
from app.chat.models import Conversation, TurnState
from app.common.models import uuid7
from retrieval.collections import grant_set
from tests.factories import (
    collection_make,
    conversation_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)

pytestmark = pytest.mark.django_db
CONVERSATIONS = "/api/v1/conversations/"


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def conversation(user, team):
    return conversation_make(user=user, team=team)


def test_a_conversation_is_made_found_changed_and_removed(client, user, team):
    collection = collection_make(team=team, user=user)
    made = client.post(CONVERSATIONS, {"title": "Pumps", "collections": [str(collection.pk)]}, format="json")
    assert made.status_code == 201
    path = made["Location"]
    assert made.json()["team"]["id"] == str(team.id)
    assert made.json()["collections"] == [str(collection.pk)]
    changed = client.patch(path, {"pinned": True, "title": "Valves"}, format="json").json()
    assert (changed["pinned"], changed["title"], changed["archived"]) == (True, "Valves", False)
    assert client.get(path).json() == changed
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_an_untitled_conversation_is_shown_by_its_first_question(client, conversation):
    turn_make(conversation=conversation, question="Which pump\n is " + "very " * 30 + "loud?")
    turn_make(conversation=conversation, question="And the other?")
    (item,) = client.get(CONVERSATIONS).json()["items"]
    assert item["title"].startswith("Which pump is very")
    assert len(item["title"]) <= 80


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"collections": [str(uuid7())]}, 404),
        ({"collections": ["x"]}, 422),
        ({"team": str(uuid7())}, 404),
        ({"title": "x" * 201}, 422),
        ({"level": "secret"}, 422),
    ],
)
def test_what_cannot_be_used_is_named(client, body, status):
    answer = client.post(CONVERSATIONS, body, format="json")
    assert answer.status_code == status
    assert Conversation.objects.count() == 0


def test_a_foreign_collection_is_not_found(client):
    stranger = user_make()
    foreign = collection_make(team=stranger.default_team, user=stranger)
    answer = client.post(CONVERSATIONS, {"collections": [str(foreign.pk)]}, format="json")
    assert answer.status_code == 404
    assert str(foreign.pk) in answer.json()["error"]["message"]
    assert foreign.name not in answer.content.decode()


def test_a_key_limited_to_models_cannot_choose_another(client_for, user, team):
    _, plain = key_create(name="k", team_id=team.id, user_id=user.id, scopes=["chat"], models_allowed=["a"])
    client = client_for(plain)
    assert client.post(CONVERSATIONS, {"model": "b"}, format="json").status_code == 403
    assert client.post(CONVERSATIONS, {"model": "a"}, format="json").status_code == 201


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("public", "private", 200),
        ("internal", "internal", 200),
        ("private", "internal", 422),
        ("internal", "public", 422),
    ],
)
def test_the_level_is_never_lowered(client, user, team, before, after, status):
    row = conversation_make(user=user, team=team, level=before)
    assert client.patch(f"{CONVERSATIONS}{row.id}/", {"level": after}, format="json").status_code == status
    row.refresh_from_db()
    assert row.level == (after if status == 200 else before)


def test_a_conversation_in_which_an_answer_is_written_is_not_removed(client, conversation):
    turn_make(conversation=conversation, state=TurnState.RUNNING)
    answer = client.delete(f"{CONVERSATIONS}{conversation.id}/")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "turn_running"
    assert Conversation.objects.filter(id=conversation.id).exists()


@pytest.mark.parametrize(("query", "count"), [({}, 2), ({"archived": "true"}, 1), ({"archived": "false"}, 1)])
def test_archived_conversations_can_be_left_out(client, user, team, query, count):
    conversation_make(user=user, team=team)
    conversation_make(user=user, team=team, archived=True)
    assert len(client.get(CONVERSATIONS, query).json()["items"]) == count


def test_who_leaves_the_team_loses_its_conversations(client_for, team):
    person = user_make(team=team, role=Role.MEMBER)
    row = conversation_make(user=person, team=team)
    own = person.teams.exclude(id=team.id).get()
    client = client_for(key_make(user=person, team=own))
    assert client.get(f"{CONVERSATIONS}{row.id}/").status_code == 200
    Membership.objects.filter(user=person, team=team).delete()
    assert client.get(f"{CONVERSATIONS}{row.id}/").status_code == 404


def test_a_colleague_does_not_see_my_conversation(client_for, team, conversation):
    colleague = client_for(key_make(user=user_make(team=team, role=Role.OWNER), team=team))
    assert colleague.get(f"{CONVERSATIONS}{conversation.id}/").status_code == 404
    assert colleague.get(CONVERSATIONS).json()["items"] == []


def test_a_turn_is_two_messages_that_form_a_tree(client, conversation):
    first = turn_make(conversation=conversation, question="One?", answer="1", reasoning="hm")
    second = turn_make(conversation=conversation, parent=first, question="Two?", answer="2")
    items = client.get(f"{CONVERSATIONS}{conversation.id}/messages/").json()["items"]
    assert [(m["role"], m["text"]) for m in items] == [
        ("assistant", "2"),
        ("user", "Two?"),
        ("assistant", "1"),
        ("user", "One?"),
    ]
    by_id = {m["id"]: m for m in items}
    assert by_id[str(second.id)]["parent_id"] == items[1]["id"]
    assert items[1]["parent_id"] == str(first.id)
    assert items[3]["parent_id"] is None
    assert items[2]["reasoning"] == "hm"


def test_an_answer_carries_its_figures_and_a_question_none(client, conversation):
    price = {"amount": "0.00012300", "currency": "EUR"}
    usage = {"input_tokens": 10, "output_tokens": 3, "estimated": False, "price": price}
    turn_make(conversation=conversation, usage=usage, timing={"ttft_ms": 5.5, "infer_ms": 20.0})
    answer, question = client.get(f"{CONVERSATIONS}{conversation.id}/messages/").json()["items"]
    assert answer["usage"] == usage
    assert answer["price"] == price
    assert answer["timing"] == {"ttft_ms": 5.5, "infer_ms": 20.0, "total_ms": None, "tokens_per_second": None}
    assert [question[name] for name in ("usage", "price", "timing", "model", "finish_reason")] == [None] * 5


def test_a_running_answer_has_no_end_yet(client, conversation):
    turn_make(conversation=conversation, state=TurnState.RUNNING, answer="", finish_reason="", ended_at=None)
    answer = client.get(f"{CONVERSATIONS}{conversation.id}/messages/").json()["items"][0]
    assert (answer["state"], answer["finish_reason"], answer["price"]) == ("running", None, None)


def test_messages_come_in_pages_of_whole_turns(client, conversation):
    for n in range(5):
        turn_make(conversation=conversation, question=f"{n}?")
    path, seen, cursor = f"{CONVERSATIONS}{conversation.id}/messages/", [], ""
    for _ in range(3):
        part = client.get(path, {"limit": 4, "cursor": cursor}).json()
        assert len(part["items"]) % 2 == 0
        seen += [m["text"] for m in part["items"] if m["role"] == "user"]
        cursor = part["next"]
    assert cursor is None
    assert seen == ["4?", "3?", "2?", "1?", "0?"]


def test_sources_are_shown_as_sent_in_the_order_of_their_numbers(client, user, team, conversation):
    collection, turn = collection_make(team=team, user=user), turn_make(conversation=conversation)
    for number in (2, 1):
        passage_make(turn=turn, collection=collection, number=number)
    items = client.get(f"/api/v1/turns/{turn.id}/sources/").json()["items"]
    assert [(s["n"], s["cited"], s["page"], s["readable"]) for s in items] == [
        (1, True, 2, True),
        (2, False, 2, True),
    ]
    assert items[0]["text"] == "Passage 1 of the document."
    answer = client.get(f"{CONVERSATIONS}{conversation.id}/messages/").json()["items"][0]
    assert answer["sources"] == [{k: v for k, v in item.items() if k != "places"} for item in items]


def test_a_source_that_may_not_be_read_any_more_is_blank(client, user, team, conversation):
    owner = user_make()
    foreign = collection_make(team=owner.default_team, user=owner)
    own = collection_make(team=team, user=user)
    turn = turn_make(
        conversation=conversation, quotes=[{"n": 1, "text": "hidden words"}, {"n": 2, "text": "open words"}]
    )
    passage_make(turn=turn, collection=foreign, number=1, text="hidden words of theirs")
    passage_make(turn=turn, collection=own, number=2)
    grant_set(collection=foreign, principal=f"user:{user.id}", verb="read", created_by=f"user:{owner.id}")
    own_paths = [f"/api/v1/turns/{turn.id}/", f"/api/v1/turns/{turn.id}/sources/"]
    paths = [*own_paths, f"{CONVERSATIONS}{conversation.id}/messages/"]
    for path in paths:
        assert "hidden words of theirs" in client.get(path).content.decode()
    grant_set(collection=foreign, principal=f"user:{user.id}", verb=None, created_by=f"user:{owner.id}")
    for path in paths:
        assert "hidden words" not in client.get(path).content.decode()
    blank, shown = client.get(f"/api/v1/turns/{turn.id}/sources/").json()["items"]
    assert (blank["readable"], blank["reason"], blank["text"], blank["page"]) == (
        False,
        "no_access",
        "",
        None,
    )
    assert blank["n"] == 1
    assert shown["readable"]


def test_a_turn_shows_question_answer_and_estimate(client, conversation):
    turn = turn_make(conversation=conversation, question="Why?", estimate={"tokenizer": "o200k_base"})
    shown = client.get(f"/api/v1/turns/{turn.id}/").json()
    assert shown["conversation_id"] == str(conversation.id)
    assert (shown["question"]["text"], shown["answer"]["id"]) == ("Why?", str(turn.id))
    assert shown["estimate"] == {"tokenizer": "o200k_base"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"rating": "good", "comment": "Right."}, 200),
        ({"rating": "bad", "reason": "sources"}, 200),
        ({"rating": "sideways"}, 422),
        ({"rating": "bad", "reason": "a mood"}, 422),
        ({"rating": "good", "comment": "x" * 2001}, 422),
        ({}, 422),
    ],
)
def test_feedback_is_kept_and_shown(client, conversation, body, status):
    turn = turn_make(conversation=conversation)
    answer = client.put(f"/api/v1/turns/{turn.id}/feedback/", body, format="json")
    assert answer.status_code == status
    turn.refresh_from_db()
    kept = {k: v for k, v in (turn.feedback or {}).items() if k in body}
    assert kept == (body if status == 200 else {})


def test_feedback_can_be_taken_back(client, conversation):
    turn = turn_make(conversation=conversation, feedback={"rating": "good"})
    answer = client.put(f"/api/v1/turns/{turn.id}/feedback/", {"rating": None}, format="json")
    assert answer.json()["feedback"] is None


def test_a_key_of_a_team_has_its_own_conversations(client_for, client, team):
    ours = client_for(key_make(user=None, team=team))
    made = ours.post(CONVERSATIONS, {}, format="json")
    assert made.status_code == 201
    assert ours.get(made["Location"]).status_code == 200
    assert client.get(made["Location"]).status_code == 404
    other = client_for(key_make(user=None, team=team_make(owner=user_make())))
    assert other.get(made["Location"]).status_code == 404

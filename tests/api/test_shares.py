"""Shared conversations: for whom a link opens, what it shows, and when it ends."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.accounts.models import Membership, Role
from app.chat.erasing import document_erase
from app.chat.models import ShareLink, TurnState
from app.common.clock import now
from retrieval.collections import grant_set
from tests.factories import (
    collection_make,
    conversation_make,
    document_ready_make,
    key_make,
    passage_make,
    turn_make,
    user_make,
)

pytestmark = pytest.mark.django_db
SHARES = "/api/v1/shares/"


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def conversation(user, team):
    row = conversation_make(user=user, team=team, title="Pumps")
    first = turn_make(conversation=row, question="One?", answer="First [1].", reasoning="secret thought")
    turn_make(conversation=row, parent=first, question="Left?", answer="Left.")
    turn_make(conversation=row, parent=first, question="Right?", answer="Right.")
    return row


@pytest.fixture
def stranger(client_for):
    """Somebody of no team of ours."""
    person = user_make()
    return client_for(key_make(user=person, team=person.default_team))


@pytest.fixture
def colleague(client_for, team):
    return client_for(key_make(user=user_make(team=team, role=Role.VIEWER), team=team))


def shared(client, conversation, **body):
    answer = client.post(f"/api/v1/conversations/{conversation.id}/shares/", body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def words(client, share):
    answer = client.get(f"{SHARES}{share['id']}/messages/")
    assert answer.status_code == 200, answer.content
    return [message["text"] for message in reversed(answer.json()["items"])]


def test_a_link_shows_one_branch_and_nothing_asked_later(client, stranger, conversation):
    newest = shared(client, conversation)
    assert words(stranger, newest) == ["One?", "First [1].", "Right?", "Right."]
    left = conversation.turns.get(question="Left?")
    older = shared(client, conversation, turn=str(left.id))
    turn_make(conversation=conversation, parent=left, question="Later?")
    assert words(stranger, older) == ["One?", "First [1].", "Left?", "Left."]
    head = stranger.get(f"{SHARES}{older['id']}/").json()
    assert (head["title"], head["shared_by"]) == ("Pumps", str(conversation.owner))
    assert newest["url"].endswith(f"/s/{newest['id']}/")


def test_readers_see_no_thinking_price_or_feedback(client, stranger, conversation):
    share = shared(client, conversation)
    answer = stranger.get(f"{SHARES}{share['id']}/messages/")
    assert "secret thought" not in answer.content.decode()
    assert not {"price", "usage", "reasoning", "notices", "feedback", "error"} & set(
        answer.json()["items"][0]
    )


def test_an_answer_that_is_being_written_is_not_shown_yet(client, stranger, conversation):
    turn_make(conversation=conversation, question="Now?", answer="half a", state=TurnState.RUNNING)
    assert words(stranger, shared(client, conversation)) == []


def test_passages_are_checked_at_each_read(client, stranger, client_for, user, team, conversation):
    collection = collection_make(team=team, user=user)
    turn = conversation.turns.get(question="One?")
    turn.quotes = [{"n": 1, "text": "marmalade quoted", "collection_id": str(collection.pk)}]
    turn.save()
    passage_make(turn=turn, collection=collection, text="marmalade passage")
    share = shared(client, conversation)
    path = f"{SHARES}{share['id']}/messages/"

    def seen(reader):
        answer = reader.get(path)
        (first,) = (m for m in answer.json()["items"] if m["text"] == "First [1].")
        return answer.content.decode(), first

    text, message = seen(stranger)
    assert "marmalade" not in text
    assert "A document" not in text
    assert (message["hidden_passages"], message["sources"], message["quotes"]) == (1, [], [])
    reader = user_make()
    grant_set(collection=collection, principal=f"user:{reader.id}", verb="read", created_by=f"user:{user.id}")
    granted = client_for(key_make(user=reader, team=reader.default_team))
    text, message = seen(granted)
    assert "marmalade passage" in text
    assert "marmalade quoted" in text
    assert (message["hidden_passages"], message["sources"][0]["page"]) == (0, 2)
    grant_set(collection=collection, principal=f"user:{reader.id}", verb=None, created_by=f"user:{user.id}")
    assert "marmalade" not in seen(granted)[0]


@pytest.mark.usefixtures("originals_dir")
def test_an_erased_document_stays_blank_in_what_was_shared(client, colleague, user, team, conversation):
    collection = collection_make(team=team, user=user)
    document = document_ready_make(collection=collection)
    turn = conversation.turns.get(question="One?")
    passage_make(turn=turn, collection=collection, text="marmalade passage", document_id=document.pk)
    share = shared(client, conversation)
    path = f"{SHARES}{share['id']}/messages/"
    assert "marmalade passage" in colleague.get(path).content.decode()
    document_erase(document=document, done_by=f"user:{user.id}")
    answer = colleague.get(path)
    assert "marmalade" not in answer.content.decode()
    (source,) = answer.json()["items"][-2]["sources"]
    assert (source["text"], source["reason"]) == ("", "erased")


def ends_by_revoking(client, share, conversation):
    assert client.delete(f"{SHARES}{share['id']}/").status_code == 204


def ends_by_time(client, share, conversation):
    ShareLink.objects.filter(id=share["id"]).update(expires_at=now() - timedelta(seconds=1))


def ends_with_the_conversation(client, share, conversation):
    assert client.delete(f"/api/v1/conversations/{conversation.id}/").status_code == 204


def ends_with_its_owner(client, share, conversation):
    conversation.owner.is_active = False
    conversation.owner.save()


def ends_when_its_owner_leaves(client, share, conversation):
    Membership.objects.filter(user=conversation.owner, team=conversation.team).delete()


def is_for_the_team_now(client, share, conversation):
    answer = client.patch(f"{SHARES}{share['id']}/", {"audience": "team"}, format="json")
    assert answer.json()["audience"] == "team"


ENDS = [
    ends_by_revoking,
    ends_by_time,
    ends_with_the_conversation,
    ends_with_its_owner,
    ends_when_its_owner_leaves,
    is_for_the_team_now,
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_link_that_ended_looks_like_one_that_never_was(client, stranger, conversation, end):
    share = shared(client, conversation)
    assert stranger.get(f"{SHARES}{share['id']}/").status_code == 200
    end(client, share, conversation)
    for path in (f"{SHARES}{share['id']}/", f"{SHARES}{share['id']}/messages/"):
        answer = stranger.get(path)
        never = stranger.get(path.replace(share["id"], str(uuid4())))
        assert answer.status_code == never.status_code == 404
        both = [a.json()["error"] for a in (answer, never)]
        assert both[0]["message"] == both[1]["message"]


def test_a_link_for_the_team_opens_for_its_viewers(client, colleague, stranger, conversation):
    share = shared(client, conversation, audience="team")
    assert words(colleague, share)[0] == "One?"
    assert stranger.get(f"{SHARES}{share['id']}/").status_code == 404


def test_only_its_owner_changes_lists_and_revokes(client, colleague, stranger, conversation):
    share = shared(client, conversation)
    for other in (colleague, stranger):
        assert other.delete(f"{SHARES}{share['id']}/").status_code == 404
        assert other.patch(f"{SHARES}{share['id']}/", {"audience": "team"}, format="json").status_code == 404
        assert other.get(SHARES).json()["items"] == []
        assert other.get(f"/api/v1/conversations/{conversation.id}/shares/").status_code == 404
    assert [item["id"] for item in client.get(SHARES).json()["items"]] == [share["id"]]
    client.delete(f"{SHARES}{share['id']}/")
    assert client.get(f"/api/v1/conversations/{conversation.id}/shares/").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422),
        ({"audience": "public"}, 422),
        ({"turn": str(uuid4())}, 404),
        ({"expires_at": None, "audience": "team"}, 201),
    ],
)
def test_what_cannot_be_shared_is_said(client, conversation, body, status):
    answer = client.post(f"/api/v1/conversations/{conversation.id}/shares/", body, format="json")
    assert answer.status_code == status
    assert ShareLink.objects.count() == (status == 201)


def test_an_empty_conversation_has_nothing_to_share(client, user, team):
    row = conversation_make(user=user, team=team)
    answer = client.post(f"/api/v1/conversations/{row.id}/shares/", {}, format="json")
    assert answer.status_code == 422
    assert "nothing to share" in answer.json()["error"]["message"]


def test_a_key_needs_the_scope_to_share(client_for, user, team, conversation):
    reader = client_for(key_make(user=user, team=team, scopes=("read", "chat")))
    answer = reader.post(f"/api/v1/conversations/{conversation.id}/shares/", {}, format="json")
    assert answer.status_code == 403


def test_the_page_of_a_link_is_for_who_is_signed_in(client, django_client, conversation):
    share = shared(client, conversation)
    path = f"/s/{share['id']}/"
    anonymous = django_client.get(path)
    assert (anonymous.status_code, anonymous["Location"]) == (302, f"/accounts/login/?next={path}")
    django_client.force_login(user_make())
    assert django_client.get(path).status_code == 200
    assert django_client.get(f"/s/{uuid4()}/").status_code == 404
    client.delete(f"{SHARES}{share['id']}/")
    assert django_client.get(path).status_code == 404


@pytest.fixture
def django_client():
    from django.test import Client

    return Client()

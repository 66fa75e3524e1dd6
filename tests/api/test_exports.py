"""A conversation as a file: whole or one branch, with sources, without what may not be read."""

import json

import pytest

from app.chat.models import TurnState
from tests.factories import collection_make, conversation_make, passage_make, turn_make, user_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def conversation(user, team):
    row = conversation_make(user=user, team=team, title="Über Pumpen / Teil 1")
    price = {"amount": "0.00123400", "currency": "EUR"}
    first = turn_make(
        conversation=row,
        question="One?\nTwo lines",
        answer="First **bold** [1].",
        usage={"input_tokens": 1, "output_tokens": 1, "estimated": False, "price": price},
    )
    turn_make(conversation=row, parent=first, question="Left?", answer="Left.", state=TurnState.STOPPED)
    turn_make(conversation=row, parent=first, question="Right?", answer="Right.")
    passage_make(turn=first, collection=collection_make(team=team, user=user), text="open words")
    owner = user_make()
    foreign = collection_make(team=owner.default_team, user=owner)
    passage_make(turn=first, collection=foreign, number=2, text="hidden words")
    return row


def export(client, conversation, **query):
    answer = client.get(f"/api/v1/conversations/{conversation.id}/export/", query)
    assert answer.status_code == 200, answer.content
    return answer


def test_markdown_has_all_branches_with_sources_and_pages(client, conversation):
    answer = export(client, conversation, format="markdown")
    text = answer.content.decode()
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="uber-pumpen-teil-1.md"'
    order = ["# Über Pumpen", "> One?\n> Two lines", "First **bold** [1].", "> Left?", "> Right?"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "[1] **A document**, page 2, Chapter\n\n> open words" in text
    assert "0.00123400 EUR" in text
    assert "*This answer was stopped.*" in text
    assert "*Another version after “One? Two lines”:*\n\n## Question" in text
    assert "hidden words" not in text
    assert "1 passage is not in this file" in text


def test_one_branch_alone(client, conversation):
    left = conversation.turns.get(question="Left?")
    text = export(client, conversation, turn=str(left.id)).content.decode()
    assert "Left." in text
    assert "Right" not in text
    assert "Another version" not in text


def test_json_has_the_tree_and_the_same_rights(client, conversation):
    made = json.loads(export(client, conversation, format="json").content)
    assert made["version"] == 1
    assert made["conversation"]["title"] == "Über Pumpen / Teil 1"
    assert [message["text"] for message in made["messages"]] == [
        "One?\nTwo lines",
        "First **bold** [1].",
        "Left?",
        "Left.",
        "Right?",
        "Right.",
    ]
    by_id = {message["id"]: message for message in made["messages"]}
    assert by_id[made["messages"][4]["parent_id"]]["text"] == "First **bold** [1]."
    assert [s["readable"] for s in made["messages"][1]["sources"]] == [True, False]
    assert "hidden words" not in json.dumps(made)


def test_only_mine_and_only_known_kinds(client, client_for, conversation, team):
    path = f"/api/v1/conversations/{conversation.id}/export/"
    assert client.get(path, {"format": "pdf"}).status_code == 422
    assert client.get(path, {"turn": str(conversation.id)}).status_code == 404
    from tests.factories import key_make

    other = client_for(key_make(user=user_make(team=team), team=team))
    assert other.get(path).status_code == 404

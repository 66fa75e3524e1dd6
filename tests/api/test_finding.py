"""The list of conversations as people use it: found by words, filtered, by last use, in pages."""

import pytest
from django.db import connection

from app.accounts.models import Role
from app.chat.finding import _turns
from app.chat.models import Conversation, Turn, TurnState
from app.common.models import uuid7
from tests.factories import conversation_make, key_make, team_make, turn_make, user_make

pytestmark = pytest.mark.django_db
CONVERSATIONS = "/api/v1/conversations/"


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def shelf(user, team):
    """Three conversations, and one of somebody else with the same words."""
    rows = {}
    for title, question, answer in (
        ("Pumps", "Which pump is loud?", "The one in hall-7, see https://intra.example/pumpen/plan.pdf"),
        (
            "Ventile",
            "Wie öffnet man das Überdruckventil?",
            "Mit dem Hebel. " + "Sonst nichts. " * 50 + "Ende.",
        ),
        ("", "Is <b>pump</b> a noun?", "Yes."),
    ):
        row = conversation_make(user=user, team=team, title=title)
        turn_make(conversation=row, question=question, answer=answer)
        rows[title or "untitled"] = row
    stranger = user_make(team=team, role=Role.OWNER)
    other = conversation_make(user=stranger, team=team, title="Pumps of theirs")
    turn_make(conversation=other, question="Which pump?", answer="öffnet")
    return rows


def found(client, **query):
    answer = client.get(CONVERSATIONS, query)
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pump", {"Pumps", "untitled"}),
        ("PUMP loud", {"Pumps"}),
        ("loud noun", set()),
        ("überdruck", {"Ventile"}),
        ("ÜBER", {"Ventile"}),
        ("hall 7", {"Pumps"}),
        ("plan.pdf", {"Pumps"}),
        ("intra.example/pumpen", {"Pumps"}),
        ("ventile", {"Ventile"}),
        ("ump", {"Pumps"}),  # in the middle of a word of the title
        ("ende", {"Ventile"}),
        ("'); DROP TABLE x; --", set()),
        ("noun':* | 'zzz", set()),
        ("???", set()),
        ("% _", set()),
    ],
)
def test_words_find_my_conversations_and_no_other(client, shelf, text, names):
    ids = {str(row.id): name for name, row in shelf.items()}
    assert {ids[item["id"]] for item in found(client, q=text)} == names


def test_a_match_shows_the_words_around_it(client, shelf):
    (item,) = found(client, q="ende hebel")
    match = item["match"]
    assert match["where"] == "answer"
    assert [piece["text"] for piece in match["snippet"] if piece["hit"]] == ["Hebel"]
    assert "".join(piece["text"] for piece in match["snippet"]).endswith("…")
    (item,) = found(client, q="noun")
    assert item["match"]["snippet"] == [
        {"text": "Is <b>pump</b> a ", "hit": False},
        {"text": "noun", "hit": True},
        {"text": "?", "hit": False},
    ]
    (item,) = found(client, q="Ventile")
    assert (item["match"]["where"], item["match"]["turn_id"]) == ("title", None)
    assert found(client)[0]["match"] is None


def test_what_is_being_written_is_found_when_it_is_there(client, user, team):
    row = conversation_make(user=user, team=team)
    turn = turn_make(conversation=row, question="marmalade", state=TurnState.RUNNING)
    assert found(client, q="marmalade") == []
    turn.state = TurnState.DONE
    turn.save()
    assert len(found(client, q="marmalade")) == 1


def test_a_very_long_text_can_be_stored_and_its_beginning_found(client, user, team):
    row = conversation_make(user=user, team=team)
    many = " ".join(f"{n:x}ü" for n in range(200_000))
    turn_make(conversation=row, question="short", answer=f"begin {many}")
    assert len(found(client, q="begin 1aü")) == 1


def test_a_key_of_a_team_finds_its_own(client_for, team):
    client = client_for(key_make(user=None, team=team))
    row = conversation_make(user=None, team=team)
    turn_make(conversation=row, question="marmalade")
    assert [item["id"] for item in found(client, q="marmalade")] == [str(row.id)]
    other = client_for(key_make(user=None, team=team_make(owner=user_make())))
    assert found(other, q="marmalade") == []


def test_the_list_comes_by_last_use_in_pages_without_gap_or_double(client, user, team):
    rows = [conversation_make(user=user, team=team, title=str(n)) for n in range(5)]
    # Two of one moment, and the oldest used last.
    Conversation.objects.filter(id=rows[2].id).update(updated_at=rows[1].updated_at)
    turn_make(conversation=rows[0])
    Conversation.objects.filter(id=rows[0].id).update(updated_at=rows[4].updated_at.replace(year=2100))
    seen, cursor = [], ""
    while cursor is not None:
        part = client.get(CONVERSATIONS, {"sort": "updated", "limit": 2, "cursor": cursor}).json()
        seen += [item["title"] for item in part["items"]]
        cursor = part["next"]
    assert seen == ["0", "4", "3", "2", "1"]
    assert client.get(CONVERSATIONS, {"sort": "updated", "cursor": "AAAA"}).status_code == 422


def test_renaming_and_pinning_move_nothing(client, user, team):
    old, new = (conversation_make(user=user, team=team) for _ in range(2))
    client.patch(f"{CONVERSATIONS}{old.id}/", {"title": "x", "pinned": True}, format="json")
    assert [item["id"] for item in found(client, sort="updated")] == [str(new.id), str(old.id)]
    assert [item["id"] for item in found(client, pinned="true")] == [str(old.id)]
    assert [item["id"] for item in found(client, pinned="false", archived="false")] == [str(new.id)]


@pytest.mark.parametrize("query", [{"q": "x" * 501}, {"sort": "best"}, {"team": "x"}, {"pinned": "perhaps"}])
def test_a_wrong_filter_is_named(client, query):
    answer = client.get(CONVERSATIONS, query)
    assert answer.status_code == 422
    assert next(iter(query)) in answer.content.decode()


def test_words_are_looked_up_in_the_index(caller, user, team):
    row = conversation_make(user=user, team=team)
    one = turn_make(conversation=row)
    fields = {field.attname: getattr(one, field.attname) for field in Turn._meta.fields}
    Turn.objects.bulk_create(
        Turn(**fields | {"id": uuid7(), "question": f"{n} other words"}) for n in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chat_turn")
    plan = _turns(caller, ["pump"]).values("conversation_id").explain()
    assert "chat_turn_words" in plan

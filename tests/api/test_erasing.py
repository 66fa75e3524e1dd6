"""Removing keeps what answers were given; erasing blanks it everywhere and leaves a receipt."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from app.accounts.models import Role
from app.api.models import IdempotencyKey
from app.chat.erasing import erasures_repeat
from app.chat.event_store import events_key
from app.chat.models import SentPassage, Turn
from retrieval import storage
from retrieval.models import Document, Receipt
from tests.factories import (
    collection_make,
    conversation_make,
    document_ready_make,
    key_make,
    passage_make,
    turn_make,
    user_make,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]
SECRET = "The vault code is 4711."


@pytest.fixture
def collection(user, team):
    return collection_make(team=team, user=user)


@pytest.fixture
def document(collection):
    return document_ready_make(collection=collection, pages=(SECRET,))


@pytest.fixture
def turn(user, team, collection, document):
    """A turn that was given the document's passage as [1] and another one's as [2]."""
    quotes = [{"n": 1, "text": SECRET}, {"n": 2, "text": "Lunch is at noon."}]
    matches = [{"n": 1, "text": SECRET, "score": 0.9}, {"n": 2, "text": "Lunch is at noon.", "score": 0.9}]
    turn = turn_make(conversation=conversation_make(user=user, team=team), quotes=quotes, matches=matches)
    passage_make(turn=turn, collection=collection, number=1, text=SECRET, document_id=document.pk)
    passage_make(turn=turn, collection=collection, number=2, text="Lunch is at noon.")
    return turn


def test_erasing_blanks_the_text_wherever_it_was_kept(client_for, api_key, document, turn, broker):
    broker.xadd(events_key(turn.pk), {"f": SECRET, "n": "sources"})
    answer = client_for(api_key).post(f"/api/v1/documents/{document.pk}/erase/")
    assert answer.status_code == 200
    receipt = answer.json()
    assert (receipt["kind"], receipt["document_id"]) == ("erased", str(document.pk))
    assert receipt["hashes"] == [document.sha256]
    assert receipt["counts"]["passages"] == receipt["counts"]["originals"] == receipt["counts"]["pages"] == 1

    assert not Document.objects.exists()
    assert storage.blob_size(document.sha256) is None
    assert not broker.exists(events_key(turn.pk))
    rows = [*Turn.objects.values(), *SentPassage.objects.values(), *Receipt.objects.values()]
    assert "4711" not in str(rows)
    kept = SentPassage.objects.get(number=1)
    assert (kept.sha256, kept.receipt, kept.text) == ("0" * 64, receipt["number"], "")

    messages = client_for(api_key).get(f"/api/v1/conversations/{turn.conversation_id}/messages/").json()
    shown = messages["items"][0]
    assert [(s["n"], s["readable"], s["reason"]) for s in shown["sources"]] == [
        (1, False, "erased"),
        (2, True, None),
    ]
    assert receipt["number"] in shown["sources"][0]["title"]
    assert [q["n"] for q in shown["quotes"]] == [m["n"] for m in shown["matches"]] == [2]
    assert shown["text"] == turn.answer
    again = client_for(api_key).get(f"/api/v1/receipts/{receipt['number']}/")
    assert again.json() == receipt


def test_what_was_removed_can_be_erased_later(client_for, api_key, document, turn):
    client = client_for(api_key)
    removed = client.delete(f"/api/v1/documents/{document.pk}/")
    assert removed.status_code == 204
    assert SentPassage.objects.filter(text=SECRET).exists()
    number = removed["X-Tessera-Receipt"]
    assert client.get(f"/api/v1/receipts/{number}/").json()["kind"] == "removed"
    erased = client.post(f"/api/v1/documents/{document.pk}/erase/").json()
    assert erased["counts"] == {"passages": 1}
    assert erased["hashes"] == [document.sha256]
    assert not SentPassage.objects.filter(text=SECRET).exists()


def test_a_collection_is_erased_with_what_was_ever_sent_of_it(
    client_for, api_key, collection, document, turn
):
    answer = client_for(api_key).post(f"/api/v1/collections/{collection.pk}/erase/")
    assert answer.json()["counts"]["passages"] == 2
    assert [p.text for p in SentPassage.objects.all()] == ["", ""]
    assert Turn.objects.get().quotes == []


def test_a_turn_that_ran_meanwhile_is_blanked_afterwards(client_for, api_key, collection, document, turn):
    client_for(api_key).post(f"/api/v1/documents/{document.pk}/erase/")
    passage_make(turn=turn, collection=collection, number=3, text=SECRET, document_id=document.pk)
    assert erasures_repeat() == 1
    assert erasures_repeat() == 0
    # Its own [1], and the one that came late.
    assert Receipt.objects.get().counts["passages"] == 2
    assert not SentPassage.objects.filter(text=SECRET).exists()


def test_the_name_of_an_erased_file_stands_nowhere_either(client_for, api_key, user, team):
    """In the questions it went along with, and in the answers that are kept for requests sent again."""
    client = client_for(api_key)
    conversation = conversation_make(user=user, team=team)
    url = f"/api/v1/conversations/{conversation.pk}/attachments/"

    def attach(name, key):
        file = SimpleUploadedFile(f"{name}.txt", f"{name} 4711".encode())
        return client.post(url, {"file": file}, format="multipart", headers={"Idempotency-Key": key})

    secret, other = (attach(name, name).json()["id"] for name in ("marmalade", "lunch"))
    files = [
        {"document_id": id_, "name": name, "error": None}
        for id_, name in ((secret, "marmalade.txt"), (other, "lunch.txt"))
    ]
    turn = turn_make(conversation=conversation, attachments=files)
    number = client.post(f"/api/v1/documents/{secret}/erase/").json()["number"]
    rows = [*Turn.objects.values(), *IdempotencyKey.objects.values(), *Document.objects.values()]
    assert "marmalade" not in str([row | {"key": ""} for row in rows])
    turn.refresh_from_db()
    assert [file["name"] for file in turn.attachments] == [f"Erased, receipt {number}", "lunch.txt"]
    again = attach("marmalade", "marmalade")
    assert (again.status_code, again.json()["error"]["code"]) == (404, "not_found")
    assert attach("lunch", "lunch").json()["id"] == other
    collection = Document.objects.get().collection_id
    client.post(f"/api/v1/collections/{collection}/erase/")
    assert "lunch.txt" not in str([*Turn.objects.values(), *IdempotencyKey.objects.values("response")])


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.VIEWER, 403), (Role.MEMBER, 403), (Role.ADMIN, 200), (Role.OWNER, 200), (None, 404)],
)
def test_only_who_manages_may_erase(client_for, team, document, turn, role, status):
    person = user_make(team=team, role=role) if role else user_make()
    client = client_for(key_make(user=person, team=person.default_team))
    assert client.post(f"/api/v1/documents/{document.pk}/erase/").status_code == status
    assert SentPassage.objects.filter(text=SECRET).exists() == (status != 200)


def test_a_receipt_is_for_who_got_it_and_who_manages(client_for, api_key, team, document):
    number = client_for(api_key).delete(f"/api/v1/documents/{document.pk}/")["X-Tessera-Receipt"]
    stranger = user_make()
    other = client_for(key_make(user=stranger, team=stranger.default_team))
    assert other.get(f"/api/v1/receipts/{number}/").status_code == 404
    assert other.post(f"/api/v1/documents/{document.pk}/erase/").status_code == 404
    assert client_for(api_key).get("/api/v1/receipts/R-unknown/").status_code == 404
    assert client_for(api_key).post(f"/api/v1/documents/{uuid4()}/erase/").status_code == 404

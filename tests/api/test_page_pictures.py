"""documents/{id}/pages/{n}.webp: drawn in the reading process, kept, shown to readers only, gone with the document."""

import io
from uuid import uuid4

import pytest
from PIL import Image, ImageChops

from retrieval import parsing, storage
from retrieval.blobs import blobs_sweep
from retrieval.derived import derived_hashes, derived_keep, derived_read
from retrieval.models import Document, DocumentText, Status
from retrieval.parsing import PAGE_BREAK
from retrieval.removal import document_remove
from retrieval.services import document_create
from tests.e2e.browser import pdf_of
from tests.factories import (
    collection_make,
    conversation_make,
    key_make,
    passage_make,
    turn_make,
    user_make,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]
FIRST = ["The blue pump delivers forty litres.", "It is oiled every second week."]
SECOND = ["The red valve closes at noon.", "Nobody opens it on Sundays."]


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


def _read(user, team, content, name):
    """A document as ingestion leaves it, read by the real reader; without vectors."""
    collection = collection_make(team=team, user=user)
    row, _ = document_create(collection=collection, name=name, content=content, created_by="user:x")
    with storage.blob_file(row.sha256) as path:
        reading = parsing.read(path, name)
    start = 0
    for page in reading.pages:
        DocumentText.objects.create(
            team_id=row.team_id,
            document=row,
            version=1,
            page=page.number,
            start=start,
            text=page.text,
            lines=[(line.start, line.end, *line.box) for line in page.lines],
            aspect=page.aspect,
        )
        start += len(page.text) + len(PAGE_BREAK)
    row.mime, row.status, row.serving_version, row.serving_sha256 = (
        reading.mime,
        Status.READY,
        1,
        row.sha256,
    )
    row.pages = len(reading.pages) if reading.paged else None
    row.save()
    return row


@pytest.fixture
def manual(user, team):
    return _read(user, team, pdf_of([FIRST, SECOND]), "manual.pdf")


def _path(document, number="1.webp"):
    return f"/api/v1/documents/{document.pk}/pages/{number}"


def _ink(picture, box):
    """Share of dark pixels within a box given in fractions of the page."""
    left, top, right, bottom = box
    part = picture.crop(
        (left * picture.width, top * picture.height, right * picture.width, bottom * picture.height)
    )
    dark = ImageChops.invert(part.convert("L")).point(lambda value: 255 if value > 128 else 0)
    return sum(dark.tobytes()) / 255 / (part.width * part.height)


def test_a_page_is_shown_and_the_boxes_hold_its_words(client, manual):
    answer = client.get(_path(manual, "2.webp"), HTTP_ACCEPT="image/webp")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/webp")
    picture = Image.open(io.BytesIO(answer.content))
    assert (picture.format, picture.width) == ("WEBP", 1200)

    text = "\n".join(FIRST) + PAGE_BREAK + "\n".join(SECOND)
    start = text.index(SECOND[1])
    place = client.get(_path(manual, "2/"), {"start": start, "end": start + len(SECOND[1])}).json()
    assert place["picture"] == _path(manual, "2.webp")
    assert place["aspect"] == pytest.approx(picture.width / picture.height, abs=0.01)
    (box,) = place["boxes"]
    # Ink where the sentence stands; none in a strip as high in the empty lower half.
    assert _ink(picture, box) > 0.05
    height = box[3] - box[1]
    assert _ink(picture, (box[0], 0.7, box[2], 0.7 + height)) == 0
    whole = client.get(_path(manual, "2/"), {"start": 0, "end": len(text)}).json()
    assert len(whole["boxes"]) == len(SECOND)
    assert client.get(_path(manual, "2/")).json()["boxes"] == []


def test_a_picture_is_drawn_once_and_asked_for_by_its_tag(client, manual, monkeypatch):
    first = client.get(_path(manual))
    monkeypatch.setattr("retrieval.pictures.picture_confined", None)
    second = client.get(_path(manual))
    assert second.content == first.content
    third = client.get(_path(manual), HTTP_IF_NONE_MATCH=first["ETag"])
    assert (third.status_code, third.content) == (304, b"")
    assert "no-cache" in first["Cache-Control"]


def test_only_readers_see_a_picture_also_a_kept_one(client, client_for, manual):
    known = client.get(_path(manual))
    stranger = user_make()
    other = client_for(key_make(user=stranger, team=stranger.default_team))
    for number in ("1.webp", "1/"):
        foreign = other.get(_path(manual, number), HTTP_IF_NONE_MATCH=known["ETag"])
        assert foreign.status_code == 404
        nowhere = other.get(f"/api/v1/documents/{uuid4()}/pages/{number}")
        assert foreign.json()["error"]["code"] == nowhere.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("content", "name", "number", "says"),
    [
        (b"Nothing but words.", "notes.txt", "1.webp", "no pages to be shown"),
        (pdf_of([FIRST]), "one.pdf", "7.webp", "no such page"),
        (pdf_of([FIRST]), "one.pdf", "0.webp", "no such page"),
    ],
)
def test_what_cannot_be_shown_says_why(client, user, team, content, name, number, says):
    answer = client.get(_path(_read(user, team, content, name), number))
    assert answer.status_code == 404
    assert says in answer.json()["error"]["message"]
    assert client.get("/api/v1/me/").status_code == 200


def test_the_text_names_pictures_where_there_are_some(client, user, team, manual):
    items = client.get(f"/api/v1/documents/{manual.pk}/text/").json()["items"]
    assert [item["picture"] for item in items] == [_path(manual, "1.webp"), _path(manual, "2.webp")]
    notes = _read(user, team, b"Nothing but words.", "notes.txt")
    assert client.get(f"/api/v1/documents/{notes.pk}/text/").json()["items"][0]["picture"] is None


def test_sources_say_where_they_stand_in_the_version_that_serves(client, user, team, manual):
    turn = turn_make(conversation=conversation_make(user=user, team=team))
    text = "\n".join(FIRST) + PAGE_BREAK + "\n".join(SECOND)
    place = {
        "document_id": manual.pk,
        "page": 1,
        "page_end": 2,
        "start": text.index("It is"),
        "end": len(text),
    }
    passage_make(turn=turn, collection=manual.collection, number=1, text=text, **place)
    passage_make(turn=turn, collection=manual.collection, number=2, text=text, document_version=9, **place)
    first, second = client.get(f"/api/v1/turns/{turn.pk}/sources/").json()["items"]
    assert [(p["page"], len(p["boxes"]), p["picture"]) for p in first["places"]] == [
        (1, 1, _path(manual, "1.webp")),
        (2, 2, _path(manual, "2.webp")),
    ]
    assert second["places"] == []


def test_pictures_go_with_their_document(client, manual):
    client.get(_path(manual))
    assert derived_read(manual.sha256, "1.webp")
    document_remove(document=manual, done_by="user:x")
    assert not list(derived_hashes())


def test_a_picture_that_is_ready_after_the_document_went_is_not_kept(client, manual, monkeypatch):
    def removed_meanwhile(source, number):
        document_remove(document=Document.objects.get(pk=manual.pk), done_by="user:x")
        return b"RIFF late"

    monkeypatch.setattr("retrieval.pictures.picture_confined", removed_meanwhile)
    assert client.get(_path(manual)).status_code == 200
    assert not list(derived_hashes())


def test_what_a_dead_process_left_is_swept(manual):
    derived_keep("ab" * 32, "1.webp", b"RIFF")
    derived_keep(manual.sha256, "1.webp", b"RIFF")
    blobs_sweep()
    assert list(derived_hashes()) == [manual.sha256]

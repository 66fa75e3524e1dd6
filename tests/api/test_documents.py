"""documents/: uploaded, queued, read, searched, removed, on the real broker and embedder."""

import io
import json
import os
from pathlib import Path

import pytest
import redis

from app.accounts.models import Role
from app.api import documents as door
from app.common import redis_door
from app.common.queues import queues_claim
from retrieval.models import Document, Status
from retrieval.services import document_ingest
from tests.factories import (
    collection_make,
    conversation_make,
    document_make,
    document_ready_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]
OPEN_DOCUMENTS = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "docs" / "open"
TEXT = b"The blue pump delivers forty litres a minute. The red valve closes at noon."


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def collection(user, team):
    return collection_make(team=team, user=user)


@pytest.fixture
def path(collection):
    return f"/api/v1/collections/{collection.pk}/documents/"


def _upload(client, path, content=TEXT, name="pumps.txt", **headers):
    file = io.BytesIO(content)
    file.name = name
    return client.post(path, {"file": file}, format="multipart", **headers)


def _queued(broker: redis.Redis, lane: str = "ingest.small") -> list[str]:
    """Ids of the documents that the worker was told of."""
    return [json.loads(raw)["headers"]["argsrepr"].strip("()',") for raw in broker.lrange(lane, 0, -1)]


def test_an_upload_is_kept_queued_and_told_to_the_worker(
    client, path, broker, collection, django_capture_on_commit_callbacks
):
    queues_claim(["ingest.small"], "a worker")
    with django_capture_on_commit_callbacks(execute=True):
        answer = _upload(client, path)
    assert answer.status_code == 202
    shown = answer.json()
    assert (shown["status"], shown["name"], shown["size"], shown["warning"]) == (
        "queued",
        "pumps.txt",
        len(TEXT),
        None,
    )
    assert answer["Location"] == f"/api/v1/documents/{shown['id']}/"
    assert client.get(answer["Location"]).json()["collection_id"] == str(collection.pk)
    assert _queued(broker) == [shown["id"]]


def test_a_long_file_waits_in_another_line_and_an_upload_says_when_nobody_serves_it(
    client, path, broker, settings, django_capture_on_commit_callbacks
):
    """Field faults E04 and F01: a tiny file behind a long one; a queue without a consumer."""
    settings.INGEST_SMALL_BYTES = 10
    with django_capture_on_commit_callbacks(execute=True):
        shown = _upload(client, path).json()
    assert shown["warning"]["part"] == "queue ingest"
    assert "No worker serves" in shown["warning"]["message"]
    assert (_queued(broker), _queued(broker, "ingest")) == ([], [shown["id"]])
    assert (shown["queue_position"], shown["eta_seconds"]) == (1, None)


def test_the_worker_is_told_only_after_the_commit(client, path, broker, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        _upload(client, path)
    assert _queued(broker) == []
    assert len(callbacks) == 1


def test_the_same_bytes_are_the_same_document(client, path):
    first, second = _upload(client, path), _upload(client, path, name="again.txt")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    assert second["Location"] == first["Location"]
    assert Document.objects.count() == 1


def test_a_failed_document_is_tried_again_by_its_next_upload(client, path):
    identity = _upload(client, path).json()["id"]
    Document.objects.update(
        status=Status.FAILED, error_step="parsing", error_code="damaged", error_message="Bad."
    )
    again = _upload(client, path)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, identity, "queued")


@pytest.mark.parametrize(
    ("content", "name", "status", "field"),
    [(b"", "empty.txt", 422, "file"), (b"x" * 2001, "big.txt", 413, "limit_bytes")],
)
def test_an_upload_that_cannot_be_taken_says_why_and_stores_nothing(
    client, path, settings, originals_dir, content, name, status, field
):
    settings.UPLOAD_MAX_BYTES = 2000
    answer = _upload(client, path, content, name)
    assert answer.status_code == status
    assert field in str(answer.json()["error"]["detail"])
    assert Document.objects.count() == 0
    assert [file for file in originals_dir.rglob("*") if file.is_file()] == []


def test_an_upload_far_over_the_limit_is_refused_by_its_announced_length(client, path, settings, monkeypatch):
    settings.UPLOAD_MAX_BYTES = 1000
    answer = _upload(client, path, b"x" * (door._MULTIPART_SLACK + 2000))
    assert answer.status_code == 413
    assert answer.json()["error"]["detail"] == {"limit_bytes": 1000}


@pytest.mark.parametrize(
    ("send", "status", "code"),
    [
        (lambda client, path: client.post(path, {}, format="multipart"), 422, "invalid"),
        (lambda client, path: client.post(path, {"file": "text"}, format="multipart"), 422, "invalid"),
        (lambda client, path: client.post(path, {"file": "text"}, format="json"), 422, "invalid"),
        (
            lambda client, path: client.post(path, {"url": "ftp://files.test/a"}, format="json"),
            422,
            "invalid",
        ),
        (
            lambda client, path: client.post(path, "file", content_type="text/plain"),
            415,
            "unsupported_media_type",
        ),
        (
            lambda client, path: client.generic("POST", path, "x", content_type="multipart/form-data"),
            400,
            "malformed",
        ),
    ],
)
def test_a_request_without_a_file_is_refused(client, path, send, status, code):
    answer = send(client, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\x00b.txt", "x" * 300 + ".txt", "день.txt", "pumps"])
def test_a_name_is_only_a_name(client, path, name):
    answer = _upload(client, path, name=name)
    assert answer.status_code in {202, 422}
    if answer.status_code == 202:
        assert "/" not in answer.json()["name"]
        assert 0 < len(answer.json()["name"]) <= 200


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 403), (Role.MEMBER, 202)])
def test_who_may_not_write_may_not_upload_or_remove(client_for, role, status):
    team = team_make(owner=(owner := user_make()))
    collection = collection_make(team=team, user=owner)
    document = document_make(collection=collection)
    client = client_for(key_make(user=user_make(team=team, role=role), team=team))
    assert _upload(client, f"/api/v1/collections/{collection.pk}/documents/").status_code == status
    assert client.delete(f"/api/v1/documents/{document.pk}/").status_code == (403 if status == 403 else 204)


def test_an_upload_is_repeatable_although_its_boundary_differs(client, path):
    first, second = (_upload(client, path, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert _upload(client, path, b"other", HTTP_IDEMPOTENCY_KEY="k").status_code == 422


def test_without_the_broker_the_file_is_kept_and_the_answer_says_so(client, path, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_door.sync_redis.cache_clear()
    try:
        answer = _upload(client, path)
    finally:
        redis_door.sync_redis.cache_clear()
    assert answer.status_code == 202
    assert answer.json()["warning"]["part"] == "broker"
    assert Document.objects.get().status == Status.QUEUED


def test_documents_of_a_collection_come_newest_first(client, collection, path):
    made = [str(document_make(collection=collection).pk) for _ in range(3)]
    part = client.get(path, {"limit": 2}).json()
    assert [item["id"] for item in part["items"]] == made[:0:-1]
    rest = client.get(path, {"limit": 2, "cursor": part["next"]}).json()
    assert ([item["id"] for item in rest["items"]], rest["next"]) == (made[:1], None)


def test_what_the_machine_read_comes_by_page(client, collection):
    document = document_ready_make(collection=collection, pages=("One.", "Two.", "Three."))
    text = f"/api/v1/documents/{document.pk}/text/"
    part = client.get(text, {"limit": 2}).json()
    assert [(p["number"], p["text"], p["start"]) for p in part["items"]] == [(1, "One.", 0), (2, "Two.", 5)]
    rest = client.get(text, {"limit": 2, "cursor": part["next"]}).json()
    assert ([p["text"] for p in rest["items"]], rest["next"]) == (["Three."], None)


def test_a_document_of_1200_pages_is_read_a_part_at_a_time(client, collection):
    """Field fault L05: a preview that draws all of it crashes."""
    pages = tuple(f"Page {number}." for number in range(1, 1201))
    document = document_ready_make(collection=collection, pages=pages)
    text = f"/api/v1/documents/{document.pk}/text/"
    first = client.get(text).json()
    assert ([p["number"] for p in first["items"]], first["next"]) == (list(range(1, 51)), "50")
    # A citation near the end is opened without the thousand pages before it.
    last = client.get(text, {"cursor": "1190"}).json()
    assert ([p["text"] for p in last["items"]], last["next"]) == (list(pages[1190:]), None)
    assert client.get(text, {"limit": 1200}).status_code == 422


@pytest.mark.parametrize(
    ("status", "action", "answer", "after"),
    [
        (Status.FAILED, "retry", 202, "queued"),
        (Status.CANCELLED, "retry", 202, "queued"),
        (Status.READY, "retry", 409, "ready"),
        (Status.QUEUED, "cancel", 200, "cancelled"),
        (Status.EMBEDDING, "cancel", 200, "cancelled"),
        (Status.READY, "cancel", 409, "ready"),
    ],
)
def test_retry_and_cancel_fit_the_state_or_say_so(client, collection, status, action, answer, after):
    document = document_make(collection=collection)
    Document.objects.update(status=status)
    response = client.post(f"/api/v1/documents/{document.pk}/{action}/")
    assert response.status_code == answer
    assert client.get(f"/api/v1/documents/{document.pk}/").json()["status"] == after


def test_a_new_version_keeps_the_id(client, collection):
    document = document_make(collection=collection, content=TEXT)
    path = f"/api/v1/documents/{document.pk}/file/"
    for content, status, version in ((TEXT, 200, 1), (b"Another text.", 202, 2)):
        file = io.BytesIO(content)
        file.name = "pumps2.txt"
        answer = client.put(path, {"file": file}, format="multipart")
        shown = answer.json()
        assert (answer.status_code, shown["version"], shown["id"]) == (status, version, str(document.pk))


def test_a_removed_document_is_gone_and_what_was_sent_of_it_stays(client, user, team, collection):
    document = document_make(collection=collection)
    turn = turn_make(conversation=conversation_make(user=user, team=team))
    passage_make(turn=turn, collection=collection, document_id=document.pk)
    assert client.delete(f"/api/v1/documents/{document.pk}/").status_code == 204
    assert client.get(f"/api/v1/documents/{document.pk}/").status_code == 404
    (source,) = client.get(f"/api/v1/turns/{turn.id}/sources/").json()["items"]
    assert source["readable"]


@pytest.mark.django_db(transaction=True)
def test_what_was_uploaded_is_read_and_found(client, path, chat_target, team):
    identity = _upload(client, path).json()["id"]
    assert document_ingest(identity) == "ready"
    shown = client.get(f"/api/v1/documents/{identity}/").json()
    assert (shown["status"], shown["progress"], shown["error"]) == ("ready", 1.0, None)
    assert shown["chunk_count"] >= 1
    found = client.post(
        "/api/v1/search/", {"query": "How much does the blue pump deliver?"}, format="json"
    ).json()
    assert found["items"][0]["document_id"] == identity
    assert "forty litres" in found["items"][0]["text"]
    (page,) = client.get(f"/api/v1/documents/{identity}/text/").json()["items"]
    passage = found["items"][0]
    assert page["text"][passage["start"] : passage["end"]] == passage["text"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("libreoffice-writer-password.pdf", "password"),
        ("invalid.pdf", ""),
    ],
)
def test_a_file_that_cannot_be_read_ends_failed_with_its_reason(client, path, chat_target, name, word):
    source = OPEN_DOCUMENTS / name
    if not source.exists():
        pytest.skip("the shared documents are not here")
    identity = _upload(client, path, source.read_bytes(), name).json()["id"]
    assert document_ingest(identity) == "failed"
    error = client.get(f"/api/v1/documents/{identity}/").json()["error"]
    assert {"step", "code", "message"} <= set(error)
    assert word in error["message"].lower()


def test_sizes_of_a_collection_are_previewed_set_and_count_when_a_document_is_read_again(
    client, collection, chat_target
):
    text = "\n\n".join(f"Paragraph {n} says that pump {n} is blue and quiet all day long." for n in range(40))
    row = document_make(collection=collection, content=text.encode())
    assert document_ingest(row.pk) == "ready"
    row.refresh_from_db()
    place = f"/api/v1/documents/{row.pk}/"
    sizes = {"size": 60, "overlap": 0, "small": 20}
    before = client.post(f"{place}preview/", {}, format="json").json()
    seen = client.post(f"{place}preview/", {"chunking": sizes, "limit": 2}, format="json").json()
    assert (before["total"], len(seen["chunks"])) == (row.chunk_count, 2)
    assert seen["total"] > before["total"]
    assert seen["chunks"][0]["text"] == text[: seen["chunks"][0]["end"]]

    path = f"/api/v1/collections/{collection.pk}/"
    wrong = client.patch(path, {"chunking": {"size": 60, "overlap": 50}}, format="json")
    assert (wrong.status_code, "half the size" in wrong.json()["error"]["message"]) == (422, True)
    assert client.patch(path, {"chunking": sizes}, format="json").json()["chunking"] == sizes
    assert client.post(f"{place}reread/").status_code == 202
    assert document_ingest(row.pk) == "ready"
    row.refresh_from_db()
    assert (row.chunk_count, row.version) == (seen["total"], 1)

"""One ingestion job: it always ends, explains itself, and pays for no text twice."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from retrieval import removal, selectors, services, storage
from retrieval.collections import collection_create
from retrieval.errors import Conflict, LeaseLost
from retrieval.lease import MAX_ATTEMPTS, documents_due, lease_take
from retrieval.models import Chunk, Collection, Document, EmbeddingDraft, EmbeddingSpace
from retrieval.types import Viewer
from tests.integration.retrieval.conftest import PERSON, TEAM, Put, find
from tests.integration.retrieval.embedders import Refusal, TwinEmbedder

pytestmark = pytest.mark.django_db


def long_text(paragraphs: int) -> str:
    return "\n\n".join(
        f"Paragraph {n} speaks about subject number {n} at length. " * 12 for n in range(paragraphs)
    )


LONG = long_text(40)


def test_a_document_becomes_searchable(
    put: Put, twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    document = put(LONG)
    assert (document.status, document.error, document.progress) == ("ready", None, 1.0)
    assert document.chunk_count == Chunk.objects.filter(document=document).count() > 5
    collection.refresh_from_db()
    assert collection.chunk_count == document.chunk_count
    text = "".join(page.text for page in selectors.document_pages(document))
    for chunk in Chunk.objects.filter(document=document):
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.vectors.count() == 1
        assert chunk.page is None
    assert not EmbeddingDraft.objects.exists()
    assert twin.payers[0] == {
        "team_id": TEAM,
        "kind": "ingest",
        "document_id": document.pk,
        "collection_id": collection.pk,
        "level": "internal",
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.html", b"<html><p>one\x00 two</p>\r\n<p>three</p></html>"),
        ("x.txt", b"one\x00 two\r\n\nthree"),
        ("x.md", b"one\x00 two\n\r\nthree"),
    ],
)
def test_offsets_hold_over_nul_bytes_and_mixed_line_ends(
    put: Put, twin: TwinEmbedder, viewer: Viewer, name: str, content: bytes
) -> None:
    document = put(content, name)
    assert document.status == "ready", document.error_message
    assert [p.text for p in selectors.document_pages(document)] == ["one two\n\nthree"]


@pytest.mark.parametrize(
    ("content", "name", "code", "says"),
    [
        (b"%PDF-1.4 broken", "a.pdf", "damaged", "viewer"),
        (b"\x7fELF" + bytes(range(256)) * 4, "a.txt", "unsupported", ""),
        (b" \n ", "a.txt", "empty", "no text"),
    ],
)
def test_an_unreadable_file_fails_with_its_reason(
    put: Put, twin: TwinEmbedder, content: bytes, name: str, code: str, says: str
) -> None:
    document = put(content, name)
    assert document.status == "failed"
    assert document.error is not None
    assert (document.error["step"], document.error["code"]) == ("parsing", code)
    assert says in document.error["message"]
    assert twin.texts == []


def test_a_vanished_original_is_said(put: Put, twin: TwinEmbedder, collection: Collection) -> None:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )
    storage.blob_remove(row.sha256)
    services.document_ingest(row.pk)
    row.refresh_from_db()
    assert row.status == "failed"
    assert "upload it again" in row.error_message


@pytest.mark.parametrize("trouble", ["short", "busy"])
def test_a_passing_trouble_of_the_embedder_is_waited_out(put: Put, twin: TwinEmbedder, trouble: str) -> None:
    if trouble == "short":
        twin.drop = 2
    else:
        twin.trouble = [Refusal("Slow down.", retryable=True), Refusal("Slow down.", retryable=True)]
    document = put(LONG)
    assert document.status == "ready"
    assert len(twin.texts) == len(set(twin.texts)) == document.chunk_count


def test_a_lasting_trouble_ends_in_failed_and_a_retry_pays_only_for_the_rest(
    put: Put, twin: TwinEmbedder
) -> None:
    twin.fail_from = 2
    document = put(long_text(120))
    assert document.status == "failed"
    assert document.error == {
        "step": "embedding",
        "code": "embedder_down",
        "message": "The embedder refuses the key.",
    }
    bought = len(twin.texts)
    assert bought == EmbeddingDraft.objects.filter(document=document).count() > 0
    assert not Chunk.objects.filter(document=document).exists()

    twin.fail_from = None
    services.document_retry(document=document)
    assert services.document_ingest(document.pk) == "ready"
    assert len(twin.texts) == len(set(twin.texts)) > bought


def test_vectors_of_another_dimension_are_refused(put: Put, twin: TwinEmbedder) -> None:
    twin.dimension = 100
    document = put("Some words to embed here.")
    assert document.status == "failed"
    assert "EMBEDDING_DIMENSION" in document.error_message


def test_an_unforeseen_error_still_ends_in_failed(put: Put, twin: TwinEmbedder) -> None:
    twin.trouble = [ZeroDivisionError("x")]
    document = put("Some words to embed here.")
    assert (document.status, document.error_code, document.error_step) == (
        "failed",
        "unforeseen",
        "embedding",
    )


def test_the_same_text_is_embedded_once_for_a_team(
    put: Put, twin: TwinEmbedder, originals_dir: object, viewer: Viewer
) -> None:
    put(LONG, "one.txt")
    bought = len(twin.texts)
    other = collection_create(name="Other", team_id=TEAM, created_by=PERSON)
    assert put(LONG, "two.txt", other).status == "ready"
    assert put(LONG + "\n\nAnd one new paragraph that closes the text.", "three.txt").status == "ready"
    assert len(twin.texts) <= bought + 2
    foreign = collection_create(name="Other", team_id=uuid4(), created_by=PERSON)
    assert put(LONG, "four.txt", foreign).status == "ready"
    # Another team pays for its own: whether a text was seen before tells nothing across teams.
    assert len(twin.texts) >= 2 * bought


def test_the_same_bytes_are_recognised(twin: TwinEmbedder, collection: Collection, put: Put) -> None:
    document = put("These very words.")
    again, created = services.document_create(
        collection=collection, name="copy.txt", content=b"These very words.", created_by=PERSON
    )
    assert (again.pk, created, again.status) == (document.pk, False, "ready")


def test_a_failed_upload_never_blocks_the_next_try(
    twin: TwinEmbedder, collection: Collection, put: Put
) -> None:
    twin.trouble = [Refusal("Down.", retryable=False)]
    document = put("These very words.")
    assert document.status == "failed"
    again, created = services.document_create(
        collection=collection, name="notes.txt", content=b"These very words.", created_by=PERSON
    )
    assert (again.pk, created, again.status, again.error) == (document.pk, False, "queued", None)
    assert services.document_ingest(again.pk) == "ready"


def test_the_old_version_serves_until_the_new_one_commits(
    twin: TwinEmbedder, viewer: Viewer, collection: Collection, put: Put
) -> None:
    document = put("The fee is twelve euros.")
    old_hash = document.sha256
    row, changed = services.document_replace(document=document, content=b"The fee is thirty euros.")
    assert changed
    twin.trouble = [Refusal("Down.", retryable=False)]
    services.document_ingest(row.pk)
    row.refresh_from_db()
    assert (row.status, row.serving_version, row.version) == ("failed", 1, 2)
    assert find("fee euros", viewer, collection)[0].text == "The fee is twelve euros."
    assert storage.blob_size(old_hash)

    services.document_retry(document=row)
    assert services.document_ingest(row.pk) == "ready"
    found = find("fee euros", viewer, collection)
    assert [(p.text, p.document_version) for p in found] == [("The fee is thirty euros.", 2)]
    assert storage.blob_size(old_hash) is None
    collection.refresh_from_db()
    assert collection.chunk_count == 1


def test_only_one_worker_holds_a_document(twin: TwinEmbedder, collection: Collection) -> None:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )
    first = lease_take(row.pk)
    assert first is not None
    assert lease_take(row.pk) is None

    Document.objects.filter(pk=row.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    second = lease_take(row.pk)
    assert second is not None
    assert second.fencing == first.fencing + 1
    with pytest.raises(LeaseLost):
        first.write(status="failed")
    second.renew()
    row.refresh_from_db()
    assert row.status == "parsing"


def test_a_worker_that_lost_its_lease_writes_nothing(put: Put, twin: TwinEmbedder) -> None:
    def overtaken() -> None:
        Document.objects.update(fencing=99, status="parsing")

    twin.before = overtaken
    document = put("Some words to embed here.")
    assert (document.status, document.chunk_count) == ("parsing", 0)
    assert not Chunk.objects.exists()
    assert not EmbeddingDraft.objects.exists()


def test_a_document_that_kills_its_workers_is_given_up(twin: TwinEmbedder, collection: Collection) -> None:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )
    for _ in range(MAX_ATTEMPTS):
        assert lease_take(row.pk) is not None
        Document.objects.filter(pk=row.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert services.document_ingest(row.pk) == "failed"
    row.refresh_from_db()
    assert row.error_code == "abandoned"
    assert f"{MAX_ATTEMPTS} times" in row.error_message


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({"status": "queued", "age": 1}, True),
        ({"status": "queued", "age": -60}, False),
        ({"status": "embedding", "age": 1}, True),
        ({"status": "embedding", "age": -60}, False),
        ({"status": "ready", "age": 1}, False),
        ({"status": "failed", "age": 1}, False),
    ],
)
def test_what_nobody_works_on_is_due(
    twin: TwinEmbedder, collection: Collection, changes: dict[str, object], due: bool
) -> None:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )
    expires = timezone.now() - timedelta(seconds=float(str(changes["age"])))
    Document.objects.filter(pk=row.pk).update(status=changes["status"], lease_expires_at=expires)
    assert documents_due() == ([(row.pk, "ingest.small")] if due else [])
    if changes["status"] == "queued":
        # Looked at just now: a long queue is not enqueued again at every beat.
        assert documents_due() == []


def test_cancel_stops_the_worker_at_its_next_write(put: Put, twin: TwinEmbedder) -> None:
    def cancelled() -> None:
        services.document_cancel(document=Document.objects.get())

    twin.before = cancelled
    document = put("Some words to embed here.")
    assert (document.status, document.chunk_count) == ("cancelled", 0)
    with pytest.raises(Conflict, match="nothing to cancel"):
        services.document_cancel(document=document)
    twin.before = lambda: None
    services.document_retry(document=document)
    assert services.document_ingest(document.pk) == "ready"


def test_a_ready_document_cannot_be_retried(put: Put, twin: TwinEmbedder) -> None:
    with pytest.raises(Conflict, match="ready"):
        services.document_retry(document=put("Some words."))


def test_a_deleted_document_ends_its_job_quietly(twin: TwinEmbedder, collection: Collection) -> None:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )

    def deleted() -> None:
        removal.document_remove(document=row, done_by=PERSON)

    twin.before = deleted
    assert services.document_ingest(row.pk) == ""
    assert services.document_ingest(uuid4()) == ""


def test_the_space_of_another_model_is_not_mixed_in(put: Put, twin: TwinEmbedder, settings: object) -> None:
    assert put("Some words.").status == "ready"
    settings.EMBEDDING_MODEL = "another"  # type: ignore[attr-defined]
    assert put("Other words.").status == "ready"
    twin.models = {"another"}
    document = put("Third words.")
    assert (document.status, document.error_message) == ("failed", "No server serves twin.")
    assert EmbeddingSpace.objects.count() == 1


def test_before_the_first_document_the_settings_decide(
    put: Put, twin: TwinEmbedder, settings: object, viewer: Viewer
) -> None:
    """Field fault F10: changing the embedder on an empty set keeps the old dimension."""
    document = put("Some words.")
    removal.document_remove(document=document, done_by=PERSON)
    # What a commit would have checked by now; an index is not made beside open checks.
    connection.check_constraints()
    settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSION = "another", 100  # type: ignore[attr-defined]
    twin.models, twin.dimension = {"another"}, 100
    assert put("Other words.").status == "ready"
    assert EmbeddingSpace.objects.get(state="active").dimension == 100
    assert find("other words", viewer)[0].text == "Other words."


def test_progress_is_visible_while_embedding(twin: TwinEmbedder, put: Put) -> None:
    seen: list[tuple[str, int, int]] = []

    def look() -> None:
        row = Document.objects.get()
        seen.append((row.status, row.progress_done, row.progress_total))

    twin.before = look
    document = put(long_text(120))
    assert len(seen) > 2
    assert {status for status, _, _ in seen} == {"embedding"}
    assert {total for _, _, total in seen} == {document.chunk_count}
    assert seen[-1][1] > 0

"""What real use does to an ingestion job: servers that restart, workers that die in odd places, long queues."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from retrieval import chunking, commit, drafts, parsing, services, storage
from retrieval.collections import collection_create
from retrieval.errors import LeaseLost, StoreAway
from retrieval.lease import STUCK, Lease, documents_due, lease_take
from retrieval.models import Collection, Document, EmbeddingDraft
from retrieval.spaces import space_current
from retrieval.tasks import document_ingest, documents_requeue_expired
from tests.integration.retrieval.conftest import PERSON, Put
from tests.integration.retrieval.embedders import Refusal, TwinEmbedder

pytestmark = pytest.mark.django_db
LONG_AGO = STUCK + timedelta(minutes=1)


class Killed(BaseException):
    """Nothing of the job may answer to it, as to `kill -9`."""


def queued(collection: Collection, text: str = "Some words to embed here.") -> Document:
    row, _ = services.document_create(
        collection=collection, name="a.txt", content=text.encode(), created_by=PERSON
    )
    return row


def taken(document: Document) -> Lease:
    lease = lease_take(document.pk)
    assert lease is not None
    return lease


def test_a_scan_that_takes_an_hour_is_not_given_up(twin: TwinEmbedder, collection: Collection) -> None:
    row = queued(collection)
    lease = taken(row)
    Document.objects.update(progressed_at=timezone.now() - LONG_AGO)
    with pytest.raises(LeaseLost):
        lease.reading(0, 0)
    lease.reading(400, 1000)
    lease.reading(0, 0)
    row.refresh_from_db()
    assert (row.status, row.progress) == ("parsing", 0.4)


def test_a_worker_killed_while_it_commits_holds_the_document_no_longer_than_another(
    twin: TwinEmbedder, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = queued(collection)

    def killed(*_: object) -> int:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(commit, "_insert_chunks", killed)
        with pytest.raises(Killed):
            services.document_ingest(row.pk)
    row.refresh_from_db()
    assert row.status == "embedding"
    assert row.lease_expires_at is not None
    assert row.lease_expires_at <= timezone.now() + timedelta(seconds=settings.INGEST_LEASE_SECONDS)
    Document.objects.update(lease_expires_at=timezone.now())
    assert documents_due() == [(row.pk, "ingest.small")]
    assert services.document_ingest(row.pk) == "ready"
    assert len(twin.texts) == 1


def test_who_lost_the_lease_keeps_no_vector_of_another_document(
    put: Put, twin: TwinEmbedder, collection: Collection, originals_dir: Path
) -> None:
    put("Some words to embed here.")
    other = collection_create(name="Other", team_id=collection.team_id, created_by=PERSON)
    row = queued(other)
    lease = taken(row)
    cuts = chunking.chunk(parsing.read(b"Some words to embed here.", "a.txt").pages)
    Document.objects.filter(pk=row.pk).update(fencing=99)
    with pytest.raises(LeaseLost):
        drafts.drafts_fill(lease, space_current(), cuts)
    assert not EmbeddingDraft.objects.exists()


def test_a_database_that_is_away_is_no_fault_of_the_document(
    put: Put, twin: TwinEmbedder, collection: Collection
) -> None:
    away = Refusal("The database does not answer.", retryable=False)
    away.code = "database_unavailable"
    twin.trouble = [away]
    row = queued(collection)
    with pytest.raises(Refusal):
        services.document_ingest(row.pk)
    row.refresh_from_db()
    assert (row.status, row.error) == ("embedding", None)
    Document.objects.update(lease_expires_at=timezone.now())
    assert services.document_ingest(row.pk) == "ready"


def test_a_store_that_is_away_for_a_while_is_waited_for(
    put: Put, twin: TwinEmbedder, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: Callable[[str], AbstractContextManager[Path]] = storage.blob_file
    troubles = [StoreAway("originals", "503"), StoreAway("originals", "503")]

    def away_first(sha256: str) -> AbstractContextManager[Path]:
        if troubles:
            raise troubles.pop()
        return there(sha256)

    monkeypatch.setattr(storage, "blob_file", away_first)
    monkeypatch.setattr(StoreAway, "retry_after", 0.0)
    assert put("Some words.").status == "ready"
    troubles += [StoreAway("originals", "503")] * 3
    failed = put("Other words.")
    assert (failed.status, failed.error_step) == ("failed", "parsing")
    assert "bucket" in failed.error_message


def waited_out() -> None:
    """So long that all may be sent again; the order of upload stays."""
    Document.objects.update(lease_expires_at=F("created_at") - timedelta(minutes=1))


def test_what_waits_in_a_queue_is_not_put_into_it_again(collection: Collection) -> None:
    """Ten thousand files at once: as many messages, however long they take."""
    first, second, long, killed = (queued(collection, text) for text in ("first", "second", "long", "killed"))
    Document.objects.filter(pk=long.pk).update(size=settings.INGEST_SMALL_BYTES + 1)
    taken(killed)
    due = [(killed.pk, "ingest.small"), (first.pk, "ingest.small"), (second.pk, "ingest.small")]
    for messages, found in (
        ({"ingest": 1, "ingest.small": 2}, due[:1]),
        ({"ingest": 2, "ingest.small": 1}, due[:2]),
        ({"ingest": 0, "ingest.small": 5}, [due[0], (long.pk, "ingest")]),
        ({}, [*due, (long.pk, "ingest")]),
    ):
        waited_out()
        assert documents_due(messages=messages) == found
    # Looked at just now.
    assert documents_due() == [due[0]]


@pytest.mark.usefixtures("broker")
def test_messages_that_were_lost_are_sent_again(collection: Collection) -> None:
    rows = [queued(collection, f"text {number}") for number in range(3)]
    waited_out()
    for row in rows[1:]:
        document_ingest.apply_async((str(row.pk),), queue="ingest.small")
    # One is missing, as after a kill that took a message with it.
    assert documents_requeue_expired() == 1
    waited_out()
    assert documents_requeue_expired() == 0
    with documents_requeue_expired.app.connection_or_acquire() as connection:
        connection.default_channel.queue_purge("ingest.small")
    assert documents_requeue_expired() == 3
    waited_out()
    assert documents_requeue_expired() == 0

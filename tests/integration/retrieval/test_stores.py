"""Files in a directory and in a bucket, which speaks S3 over HTTP: the same to everything above."""

import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from app.embedded.checks import documents
from app.ops.first_run import originals_count
from retrieval import storage
from retrieval.blobs import blobs_sweep
from retrieval.derived import derived_hashes, derived_keep, derived_read
from retrieval.errors import StoreAway
from retrieval.models import Document
from retrieval.removal import document_remove
from retrieval.services import document_create, document_replace
from retrieval.stores import Gone, Store, scratch_file, store
from tests.integration.retrieval.conftest import PERSON, Put
from tests.integration.retrieval.embedders import TwinEmbedder

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["directory", "bucket"])
def place(request: pytest.FixtureRequest, originals_dir: Path) -> Store:
    if request.param == "bucket":
        request.getfixturevalue("bucket")
    return store()


def _kept(place: Store, key: str, content: bytes) -> None:
    with scratch_file() as path:
        path.write_bytes(content)
        place.keep(key, path)


def test_what_is_kept_is_read_listed_and_removed(place: Store) -> None:
    _kept(place, "ab/cd/one", b"first")
    _kept(place, "ab/cd/one", b"second")
    _kept(place, "derived/ab/picture", b"p")
    with place.local("ab/cd/one") as path:
        assert path.read_bytes() == b"second"
    assert place.size("ab/cd/one") == len(b"second")
    assert sorted(place.keys()) == ["ab/cd/one", "derived/ab/picture"]
    assert list(place.keys("derived/")) == ["derived/ab/picture"]
    assert list(place.keys("ab/cd/o")) == ["ab/cd/one"]
    assert not list(place.keys(older_than=3600))
    assert "ab/cd/one" in place.where("ab/cd/one")
    assert place.remove("ab/cd/one")
    assert not place.remove("ab/cd/one")
    assert place.size("ab/cd/one") is None
    with pytest.raises(Gone), place.local("ab/cd/one"):
        pass


def test_a_large_file_goes_in_parts_and_nothing_stays_beside(bucket: str, originals_dir: Path) -> None:
    content = bytes(range(256)) * (20 << 12)
    _kept(store(), "large", content)
    with store().local("large") as path:
        assert path.read_bytes() == content
    assert not [path for path in originals_dir.rglob("*") if path.is_file()]


def test_a_document_lives_and_dies_in_a_bucket(
    bucket: str, twin: TwinEmbedder, put: Put, originals_dir: Path
) -> None:
    row = put("The boiler is serviced in March.")
    assert (row.status, row.chunk_count) == ("ready", 1)
    assert list(storage.blobs_older_than(0)) == [row.sha256]
    derived_keep(row.sha256, "1.webp", b"RIFF")
    assert derived_read(row.sha256, "1.webp") == b"RIFF"
    assert derived_read(row.sha256, "2.webp") is None
    assert originals_count() == 2
    assert documents().state == "ok"
    document_replace(document=row, content=b"The boiler is serviced in April.")
    row.refresh_from_db()
    document_remove(document=row, done_by=PERSON)
    assert not list(store().keys())
    assert not [path for path in originals_dir.rglob("*") if path.is_file()]


def test_what_a_dead_process_left_in_a_bucket_is_swept(bucket: str, put: Put, twin: TwinEmbedder) -> None:
    row = put("The boiler is serviced in March.")
    derived_keep("ab" * 32, "1.webp", b"RIFF")
    derived_keep(row.sha256, "1.webp", b"RIFF")
    blobs_sweep()
    assert list(derived_hashes()) == [row.sha256]
    assert storage.blob_size(row.sha256)


def test_a_document_whose_original_is_gone_says_so(bucket: str, put: Put, twin: TwinEmbedder) -> None:
    row = put("The boiler is serviced in March.")
    storage.blob_remove(row.sha256)
    assert documents().state == "failed"
    Document.objects.filter(pk=row.pk).update(status="failed")
    again = put("The boiler is serviced in March.")
    assert again.status == "ready"


def test_a_bucket_that_is_away_or_refuses_takes_nothing_in_and_says_so(
    bucket: str, collection: object, settings: Settings
) -> None:
    settings.ORIGINALS_BUCKET = "somebody-elses"
    with pytest.raises(StoreAway, match="NoSuchBucket"):
        document_create(collection=collection, name="a.txt", content=b"text", created_by=PERSON)
    assert not Document.objects.exists()
    settings.ORIGINALS_S3_ENDPOINT = "http://127.0.0.1:9"
    with pytest.raises(StoreAway, match="EndpointConnectionError"):
        document_create(collection=collection, name="a.txt", content=b"text", created_by=PERSON)
    check = documents()
    assert check.state == "failed"
    assert "ORIGINALS_S3_ENDPOINT" in check.message


def test_a_bucket_without_the_package_for_it_says_how_to_install_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "retrieval.bucket", raising=False)
    settings.ORIGINALS_BUCKET = "nobodys"
    with pytest.raises(ImproperlyConfigured, match=r"requirements/s3\.txt"):
        store()

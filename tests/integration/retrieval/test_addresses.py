"""Documents given as an address, and files that need a password."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import pypdf
import pytest
from django.conf import LazySettings

from retrieval import services, storage
from retrieval.errors import ReadError
from retrieval.models import Collection, Document
from retrieval.previews import document_preview
from retrieval.types import Viewer
from tests.integration.retrieval.conftest import PERSON, Put, find
from tests.integration.retrieval.embedders import TwinEmbedder

pytestmark = pytest.mark.django_db
PAGE = b"<title>Pumps</title><p>The blue pump delivers forty litres a minute.</p>"


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/gone" else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"" if self.path == "/empty" else PAGE)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def site(settings: LazySettings) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{server.server_address[1]}"
        settings.FETCH_ALLOW = [at]
        yield f"http://{at}"
        server.shutdown()


def fetched(collection: Collection, url: str) -> Document:
    row, _ = services.document_fetch(collection=collection, url=url, created_by=PERSON)
    services.document_ingest(row.pk)
    row.refresh_from_db()
    return row


def test_an_address_is_fetched_kept_and_found(
    collection: Collection, twin: TwinEmbedder, viewer: Viewer, site: str
) -> None:
    row, created = services.document_fetch(collection=collection, url=f"{site}/pumps", created_by=PERSON)
    assert (created, row.sha256, row.size) == (True, "", 0)
    again, created = services.document_fetch(collection=collection, url=f"{site}/pumps", created_by=PERSON)
    assert (again.pk, created) == (row.pk, False)
    assert services.document_ingest(row.pk) == "ready"
    row.refresh_from_db()
    assert (row.name, row.title, row.size, row.source_url) == (
        "pumps.html",
        "Pumps",
        len(PAGE),
        f"{site}/pumps",
    )
    with storage.blob_file(row.sha256) as path:
        assert path.read_bytes() == PAGE
    assert find("blue pump", viewer, collection)[0].document_id == row.pk


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("/gone", "fetch_failed", "status 404"),
        ("/empty", "empty", "empty page"),
        ("http://localhost:1/x", "address_refused", "inside this network"),
    ],
)
def test_what_cannot_be_fetched_says_why_and_is_tried_again(
    collection: Collection, twin: TwinEmbedder, site: str, path: str, code: str, words: str
) -> None:
    row = fetched(collection, path if "://" in path else site + path)
    assert (row.status, row.error_step, row.error_code, row.sha256) == ("failed", "fetching", code, "")
    assert words in row.error_message
    again, created = services.document_fetch(collection=collection, url=row.source_url, created_by=PERSON)
    assert (again.pk, again.status, created) == (row.pk, "queued", False)


def test_reading_anew_fetches_anew_while_the_old_version_serves(
    collection: Collection, twin: TwinEmbedder, site: str, viewer: Viewer
) -> None:
    row = fetched(collection, f"{site}/pumps")
    # What lay there before was something else.
    Document.objects.filter(pk=row.pk).update(sha256="ab" * 32, serving_sha256="ab" * 32)
    again = services.document_reread(document=row)
    assert (again.sha256, again.version, again.serving_version, again.status) == ("", 2, 1, "queued")
    assert find("blue pump", viewer, collection)[0].document_version == 1
    services.document_ingest(row.pk)
    row.refresh_from_db()
    assert (row.status, row.serving_version, row.sha256) == ("ready", 2, hashlib.sha256(PAGE).hexdigest())
    assert find("blue pump", viewer, collection)[0].document_version == 2


def test_an_address_with_bytes_that_are_here_names_the_document(
    collection: Collection, twin: TwinEmbedder, site: str, put: Put
) -> None:
    put(PAGE, "kept.html")
    row = fetched(collection, f"{site}/same")
    assert (row.status, row.error_code) == ("failed", "conflict")
    assert "“kept.html”" in row.error_message
    assert Document.objects.filter(collection=collection).count() == 2


def locked_pdf(password: str) -> bytes:
    """One page of text that opens with the password only."""
    from_text = b"BT /F1 12 Tf 60 760 Td (The blue pump delivers forty litres a minute.) Tj ET"
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(595, 842)
    font = pypdf.generic.DictionaryObject(
        {
            pypdf.generic.NameObject("/Type"): pypdf.generic.NameObject("/Font"),
            pypdf.generic.NameObject("/Subtype"): pypdf.generic.NameObject("/Type1"),
            pypdf.generic.NameObject("/BaseFont"): pypdf.generic.NameObject("/Helvetica"),
        }
    )
    fonts = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/F1"): font})
    page[pypdf.generic.NameObject("/Resources")] = pypdf.generic.DictionaryObject(
        {pypdf.generic.NameObject("/Font"): fonts}
    )
    stream = pypdf.generic.StreamObject()
    stream.set_data(from_text)
    page[pypdf.generic.NameObject("/Contents")] = writer._add_object(stream)
    writer.encrypt(password, algorithm="AES-256")
    made = BytesIO()
    writer.write(made)
    return made.getvalue()


def test_a_password_is_sealed_until_the_file_was_read_and_then_forgotten(
    collection: Collection, twin: TwinEmbedder, viewer: Viewer
) -> None:
    content = locked_pdf("geheim 1")
    row, _ = services.document_create(
        collection=collection, name="a.pdf", content=content, created_by=PERSON, password="falsch"
    )
    row.refresh_from_db()
    assert row.password_sealed
    assert "falsch" not in row.password_sealed
    assert services.document_ingest(row.pk) == "failed"
    row.refresh_from_db()
    assert (row.error_code, row.password_sealed) == ("encrypted", "")
    assert "wrong" in row.error_message
    services.document_retry(document=row, password="geheim 1")
    assert services.document_ingest(row.pk) == "ready"
    row.refresh_from_db()
    assert row.password_sealed == ""
    assert find("blue pump", viewer, collection)[0].document_id == row.pk
    # What it would be cut into needs the password too, which is not there any more.
    with pytest.raises(ReadError, match="password"):
        document_preview(document=row, chunking={}, limit=5)
    assert document_preview(document=row, chunking={}, limit=5, password="geheim 1").total == 1
    # Read anew it is asked for again; what serves goes on serving.
    services.document_reread(document=row)
    assert services.document_ingest(row.pk) == "failed"
    assert find("blue pump", viewer, collection)[0].document_id == row.pk
    services.document_retry(document=row, password="geheim 1")
    services.document_cancel(document=row)
    row.refresh_from_db()
    assert (row.status, row.password_sealed) == ("cancelled", "")

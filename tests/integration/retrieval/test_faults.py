"""Field faults of ingestion that no other test holds; see docs/faults-retrieval.md."""

import inspect
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval import commit, lanes, parsing, removal, selectors, services, tasks
from retrieval.models import Chunk, ChunkVector, Collection, Document, Grant, Status
from retrieval.types import Viewer
from tests.integration.retrieval.conftest import PERSON, Put, find
from tests.integration.retrieval.embedders import TwinEmbedder

pytestmark = pytest.mark.django_db


def test_a_long_file_with_many_headings_goes_through(
    put: Put, twin: TwinEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A03, L02: more sections in one file than one statement carries rows."""
    monkeypatch.setattr(commit, "_ROWS", 40)
    text = "\n\n".join(
        f"# Section {n}\n\nIt is about item {n} alone. " + "More words. " * 60 for n in range(150)
    )
    document = put(text, "long.md")
    assert document.status == "ready"
    assert document.chunk_count == ChunkVector.objects.filter(document_id=document.pk).count() > 100


def test_a_question_on_a_late_row_finds_it_with_its_header(
    put: Put, twin: TwinEmbedder, viewer: Viewer
) -> None:
    """E14: three thousand rows, two columns of the same name."""
    rows = "\n".join(f"account{n},{n * 7},{n * 11},branch{n % 9}" for n in range(3000))
    document = put(f"Account,Amount,Amount,Branch\n{rows}\n", "ledger.csv")
    assert (document.status, document.reader) == ("ready", f"csv/{parsing.VERSION}")
    best = find("amount of account2900", viewer, limit=1)[0]
    assert "account2900 | 20300 | 31900 | branch2" in best.text
    assert "Account | Amount | Amount | Branch" in f"{best.heading}\n{best.text}"


def test_a_document_says_which_reader_read_it(
    put: Put, twin: TwinEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E17: what an older reader read is told apart, and reading it anew brings it up to date."""
    document = put("<html><h1>Fees</h1><p>Three per cent.", "fees.html")
    assert document.reader == f"html/{parsing.VERSION}"
    monkeypatch.setattr(parsing, "VERSION", parsing.VERSION + 1)
    services.document_reread(document=document)
    services.document_ingest(document.pk)
    document.refresh_from_db()
    assert document.reader == f"html/{parsing.VERSION}"


def test_an_empty_file_lends_no_other_text(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    """A06: a file without text right after another one's upload."""
    put("The code of the vault is 4711.", "other.txt")
    empty = put(b" \n ", "empty.txt")
    assert (empty.status, empty.error_code) == ("failed", "empty")
    assert not Chunk.objects.filter(document=empty).exists()
    assert selectors.document_pages(empty) == []


def test_no_chunk_is_longer_than_the_embedder_takes(put: Put, twin: TwinEmbedder) -> None:
    """B13: cut by tokens, not by characters, whatever the script."""
    for text in ("verylongword" * 900, "漢字仮名" * 900, "1234567890 " * 900, "a b c d e f g " * 900):
        assert put(text).status == "ready"
    assert max(Chunk.objects.values_list("tokens", flat=True)) <= 512


def test_without_a_grant_nothing_is_found(
    put: Put, twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    """D06: a collection whose rights are not known is nobody's."""
    put("The pump is blue.")
    Grant.objects.all().delete()
    assert find("pump blue", viewer) == []


def test_what_is_shown_is_what_is_searched(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    """E13: one decoder for both."""
    for content in ("名称,数量\n电子书,20\n".encode("gb18030"), "Preis: 5 €".encode("utf-16-le")):
        document = put(content, "table.csv")
        shown = "".join(page.text for page in selectors.document_pages(document))
        chunks = Chunk.objects.filter(document=document)
        assert all(shown[c.start : c.end] == c.text for c in chunks)
        assert "电子书" in shown or "€" in shown


def test_tasks_take_ids_and_nothing_else() -> None:
    """F02: a message holds an id, never a payload."""
    assert list(inspect.signature(tasks.document_ingest.run).parameters) == ["document_id"]
    for task in (tasks.documents_requeue_expired, tasks.spaces_advance, tasks.originals_sweep):
        assert not inspect.signature(task.run).parameters


def test_a_long_document_is_removed_by_a_few_statements(put: Put, twin: TwinEmbedder) -> None:
    """P01: by the document's id, not chunk by chunk."""
    document = put("\n\n".join(f"Paragraph {n}. " + "Words follow. " * 90 for n in range(300)))
    assert document.chunk_count > 200
    with CaptureQueriesContext(
        connection,
    ) as seen:
        removal.document_remove(document=document, done_by=PERSON)
    assert len(seen) < 30
    assert not ChunkVector.objects.exists()


@pytest.mark.parametrize(
    ("done", "total", "since", "left"),
    [(0, 100, 10, None), (50, 100, 10, 10), (100, 100, 10, None), (1, 1000, 2, 1998), (5, 0, 3, None)],
)
def test_pace_gives_the_time_that_is_left(done: int, total: int, since: int, left: int | None) -> None:
    """P03: an estimate that follows the pace, and none before there is one."""
    now = timezone.now()
    row = Document(
        status=Status.EMBEDDING,
        progress_done=done,
        progress_total=total,
        stage_at=now - timedelta(seconds=since),
    )
    assert lanes.eta_seconds(row, now) == left

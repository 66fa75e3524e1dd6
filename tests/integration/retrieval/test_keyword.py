"""The keyword leg on the real database: BM25, languages, counts, filters and rights."""

from collections import Counter
from datetime import timedelta
from math import log
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from retrieval import keyword, removal, services
from retrieval.collections import collection_create
from retrieval.keyword_index import words_backfill, words_fold
from retrieval.models import Chunk, ChunkWords, Collection, Document, WordCount, WordDelta
from retrieval.scope import reach, scope_of
from retrieval.types import Filters, Viewer
from retrieval.words import words_of
from tests.integration.retrieval.conftest import PERSON, Put, find
from tests.integration.retrieval.embedders import TwinEmbedder

pytestmark = pytest.mark.django_db

NOTES = {
    "leave.txt": "Annual leave is thirty days. Leave is asked for in writing.",
    "lunch.txt": "Lunch is served at noon in the canteen on the ground floor.",
    "print.txt": "The printer prints in black, on paper; ask for paper at the desk in writing.",
    "code.txt": "Invoice INV-2024-0017 was paid in March and is closed.",
}


@pytest.fixture
def notes(put: Put, twin: TwinEmbedder) -> dict[str, Document]:
    return {name: put(text, name) for name, text in NOTES.items()}


@pytest.fixture(params=["scan", "candidates", "candidates of much"])
def plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "scan":
        monkeypatch.setattr(keyword, "SCAN_UP_TO", 0)
    if request.param == "candidates of much":
        monkeypatch.setattr(keyword, "_FEW", 0)
    return str(request.param)


def by_words(query: str, viewer: Viewer, filters: Filters | None = None) -> list[tuple[str, float]]:
    """(document name, BM25) of the keyword leg alone."""
    scope, within = reach(scope_of(viewer, None, filters))
    found = keyword.matching(keyword.question_of(query, scope), scope, within, limit=10)
    rows = ChunkWords.objects.in_bulk([chunk for chunk, _ in found])
    names = Document.objects.in_bulk([row.document_id for row in rows.values()])
    return [(names[rows[chunk].document_id].name, score) for chunk, score in found]


def test_scores_are_bm25(plan: str, notes: dict[str, Document], viewer: Viewer) -> None:
    lengths = {row.document_id: row.length for row in ChunkWords.objects.all()}
    found = by_words("leave in writing", viewer)
    assert [name for name, _ in found] == ["leave.txt", "print.txt"]
    # By hand: each document was weighed with the mean of its day, fifty chunks of seventy words before the first.
    total, mean = 0, 3500.0
    means = {}
    for row in Document.objects.order_by("created_at"):
        total, mean = total + 1, mean + lengths[row.pk]
        means[row.name] = mean / (50 + total)

    def weight(name: str, times: int) -> float:
        length = lengths[notes[name].pk]
        return times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / means[name]))

    leave, writing = log(1 + 3.5 / 1.5), log(1 + 2.5 / 2.5)
    expected = leave * weight("leave.txt", 2) + writing * weight("leave.txt", 1)
    assert found[0][1] == pytest.approx(expected, rel=1e-4)


def test_common_words_bring_up_what_holds_two_of_them(
    put: Put, twin: TwinEmbedder, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, text in enumerate(
        ("leave writing", "writing desk leave", "desk writing", "leave", "desk", "writing")
    ):
        put(f"{text} {'filler ' * n}", f"{text}.txt")
    every = dict(by_words("leave writing desk", viewer))
    assert len(every) == 6
    monkeypatch.setattr(keyword, "SCAN_UP_TO", 0)
    monkeypatch.setattr(keyword, "_ALONE", 0)
    monkeypatch.setattr(keyword, "_ENOUGH", 1)
    two = dict(by_words("leave writing desk", viewer))
    assert two == {name: every[name] for name in every if " " in name}
    assert list(two) == sorted(two, key=lambda name: -every[name])
    assert len(by_words("desk", viewer)) == 3


def test_counts_are_read_from_their_index_alone() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'retrieval_wordcount'::regclass"
            " AND indisprimary AND indisvalid"
        )
        assert cursor.fetchone()[0].endswith("(term, collection_id) INCLUDE (chunks)")


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What about INV-2024-0017?", "code.txt"),
        ("printing papers", "print.txt"),
        ("canteens", "lunch.txt"),
    ],
)
def test_words_are_found_by_stem_and_numbers_as_they_are(
    plan: str, notes: dict[str, Document], viewer: Viewer, question: str, first: str
) -> None:
    assert by_words(question, viewer)[0][0] == first
    assert by_words("the of and", viewer) == []
    assert by_words("unheard", viewer) == []


def test_a_name_in_a_chinese_report_is_found(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    put("本报告由审计师王小明签署，日期为三月。", "audit.txt")
    put("公司的年假为三十天，员工须提前申请。", "leave.txt")
    put("The auditor's report is kept with the minutes of the board.", "english.txt")
    assert Document.objects.get(name="audit.txt").language == "zh"
    assert by_words("谁是王小明？", viewer)[0][0] == "audit.txt"
    assert by_words("auditors", viewer)[0][0] == "english.txt"
    assert find("谁是王小明？", viewer)[0].title == "audit.txt"


def test_each_document_is_stemmed_in_its_language(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    put("Die Häuser der Stadt sind alle aus Stein und nicht aus Holz gebaut.", "haus.txt")
    put("The houses of the city are built of stone and not of wood.", "house.txt")
    assert by_words("das Haus der Stadt", viewer)[0][0] == "haus.txt"
    assert by_words("what is a house built of", viewer)[0][0] == "house.txt"


def _counts() -> Counter[tuple[object, int]]:
    counted: Counter[tuple[object, int]] = Counter()
    for row in WordCount.objects.all():
        counted[row.collection_id, row.term] += row.chunks
    for delta in WordDelta.objects.all():
        counted[delta.collection_id, delta.term] += delta.difference
    return Counter({key: value for key, value in counted.items() if value})


def test_counts_follow_whatever_happens_to_documents(
    put: Put, twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    put("One stays for ever and ever.", "stays.txt")
    before = _counts()
    assert before
    row = put("A second one about lunch.", "goes.txt")
    assert _counts() != before
    assert words_fold() > 0
    assert (WordDelta.objects.count(), words_fold()) == (0, 0)
    services.document_replace(document=row, content=b"Another text about dinner.")
    services.document_ingest(row.pk)
    assert [name for name, _ in by_words("dinner", viewer)] == ["goes.txt"]
    assert by_words("lunch", viewer) == []
    removal.document_remove(document=row, done_by=PERSON)
    assert _counts() == before
    removal.collection_remove(collection=collection, done_by=PERSON)
    assert (ChunkWords.objects.count(), _counts()) == (0, Counter())
    words_fold()
    assert WordCount.objects.count() == 0


def test_what_was_stored_before_is_indexed_later(notes: dict[str, Document], viewer: Viewer) -> None:
    counted = _counts()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_chunkwords WHERE document_id = %s", [notes["lunch.txt"].pk])
    assert by_words("canteen", viewer) == []
    assert words_backfill() == 1
    assert by_words("canteen", viewer)[0][0] == "lunch.txt"
    assert _counts() == counted


def test_words_counted_one_by_one_weigh_what_the_database_reads_in_the_whole_text(
    put: Put, twin: TwinEmbedder
) -> None:
    texts = (
        "The U.S.-based firm's 3.5 % rise: see a/b, x.y@example.org and http://example.org/Path?q=1, the firm says.",
        "Größere Häuser, größeres Haus; das größte der Häuser kostet 1.234,50 € und 12e5 123abc abc123.",
        "東京都の天気は晴れ、東京の気温は20度。Tokyo weather 天気",
        "l'été à l'École où l’on étudie l'été",
        "a_b __init__ C++ ½ ① ﬁnance ＡＢＣ１２３ naïve na\u0308ive",
    )
    for number, text in enumerate(texts):
        put(text, f"{number}.txt")
    with connection.cursor() as cursor:
        for row in ChunkWords.objects.all():
            words = words_of(Chunk.objects.get(pk=row.chunk_id).text)
            cursor.execute(
                "SELECT array_agg(term ORDER BY term), array_agg(times ORDER BY term), sum(times)"
                " FROM retrieval_terms(%s::regconfig, %s, %s)",
                [row.configuration, words.spaced, words.pairs],
            )
            terms, times, length = cursor.fetchone()
            assert (row.terms, row.length) == (terms, length)
            # The same bend for all of a text: each weight is told by how often its word is said.
            weights = row.weights.values()
            bend = times[0] * (2.2 - weights[0]) / weights[0]
            assert weights == pytest.approx([n * 2.2 / (n + bend) for n in times], rel=1e-5)
    assert ChunkWords.objects.count() == len(texts)


def test_foreign_words_neither_are_found_nor_weigh(
    plan: str, put: Put, notes: dict[str, Document], viewer: Viewer, stranger: Viewer
) -> None:
    alone = by_words("leave in writing", viewer)
    foreign = collection_create(name="Foreign", team_id=uuid4(), created_by=f"user:{uuid4()}")
    for n in range(5):
        put(f"Leave number {n} in writing.", f"{n}.txt", foreign)
    assert by_words("leave in writing", viewer) == alone
    assert by_words("leave in writing", stranger) == []


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(), {"leave.txt", "print.txt"}),
        (Filters(languages=["en"]), {"leave.txt", "print.txt"}),
        (Filters(languages=["de"]), set()),
        (Filters(languages=[]), set()),
        (Filters(tags=["hr", "it"]), {"leave.txt", "print.txt"}),
        (Filters(tags=["hr"]), {"leave.txt"}),
        (Filters(metadata={"author": {"name": "Ada"}}), {"print.txt"}),
        (Filters(since=timezone.now() - timedelta(hours=1)), {"leave.txt", "print.txt"}),
        (Filters(until=timezone.now() - timedelta(hours=1)), set()),
        (Filters(since=timezone.now() - timedelta(days=1), tags=["it"]), {"print.txt"}),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_filters_narrow_both_legs(
    notes: dict[str, Document],
    viewer: Viewer,
    filters: Filters,
    names: set[str],
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not named:
        monkeypatch.setattr("retrieval.scope._NAMED_UP_TO", 0)
    Document.objects.filter(name="leave.txt").update(metadata={"tags": ["hr", "people"]})
    Document.objects.filter(name="print.txt").update(
        metadata={"tags": ["it"], "author": {"name": "Ada", "year": 1843}}
    )
    assert {name for name, _ in by_words("leave in writing", viewer, filters)} == names
    assert {p.title for p in find("leave in writing", viewer, filters=filters)} >= names
    if not names:
        assert find("leave in writing", viewer, filters=filters) == []


def test_a_filter_by_document(notes: dict[str, Document], viewer: Viewer) -> None:
    only = Filters(documents=[notes["print.txt"].pk, uuid4()])
    assert [p.title for p in find("leave in writing", viewer, filters=only)] == ["print.txt"]

"""Search on the real database: plans, thresholds, and the real embedder."""

from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from retrieval import commit, keyword, nearest, scope, spaces
from retrieval.collections import collection_create
from retrieval.hits import hits
from retrieval.models import Chunk, ChunkVector, Collection, EmbeddingSpace
from retrieval.own_questions import Expected
from retrieval.quotes import quote_sentences
from retrieval.types import Passage, Viewer
from tests.e2e.browser import pdf_of
from tests.integration.retrieval.conftest import PERSON, TEAM, Put, find
from tests.integration.retrieval.embedders import Refusal, TwinEmbedder

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["exact", "compared", "approximate"])
def plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "compared":
        monkeypatch.setattr(nearest, "EXACT_UP_TO", 0)
    if request.param == "approximate":
        monkeypatch.setattr(scope.Reach, "exact", False)
        monkeypatch.setattr(keyword, "SCAN_UP_TO", 0)
    return str(request.param)


def test_both_plans_find_the_same(
    plan: str, put: Put, twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    for n in range(20):
        put(f"Note {n} is about subject{n} and nothing else.", f"{n}.txt")
    foreign = collection_create(name="Foreign", team_id=uuid4(), created_by=f"user:{uuid4()}")
    for n in range(20):
        put(f"Note {n} is about subject7 and subject{n}.", f"{n}.txt", foreign)
    found = find("about subject7", viewer, limit=10)
    assert found[0].title == "7.txt"
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    assert len({p.chunk_id for p in found}) == len(found) == 10
    assert {p.collection_id for p in found} == {collection.pk}


def test_what_is_near_to_the_first_hit_comes_before_what_is_near_to_nothing(
    plan: str, put: Put, twin: TwinEmbedder, viewer: Viewer
) -> None:
    put("Holiday leave form", "leave.txt")
    put("Fuser drum replacement", "drum.txt")
    put("Toner drum replacement", "toner.txt")
    EmbeddingSpace.objects.update(min_similarity=-1.0)
    assert [p.title for p in find("toner", viewer)] == ["toner.txt", "drum.txt", "leave.txt"]


def test_what_the_index_does_not_hold_yet_is_found_all_the_same(
    put: Put, twin: TwinEmbedder, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope.Reach, "exact", False)
    for n in range(6):
        put(f"Note {n} is about subject{n} and nothing else.", f"{n}.txt")
    assert ChunkVector.objects.filter(indexed=False).count() == 6
    before = find("about subject3", viewer, limit=6)
    monkeypatch.setattr(spaces, "_FOLDED", 2)
    assert spaces.vectors_fold(go_on=lambda: False) == 2
    assert _same(find("about subject3", viewer, limit=6), before)
    assert spaces.vectors_fold() == 4
    assert not ChunkVector.objects.filter(indexed=False).exists()
    assert _same(find("about subject3", viewer, limit=6), before)
    assert before[0].title == "3.txt"


def test_what_comes_in_faster_than_the_index_takes_it_enters_at_once(
    put: Put, twin: TwinEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "WAITING", 3)
    rows = [put(f"Note {n} is about subject{n}.", f"{n}.txt") for n in range(2)]
    rows.append(put("\n\n".join(f"Part {n}. " + f"About subject{n}. " * 200 for n in range(3)), "long.txt"))
    rows.append(put("Note 3 is about subject3.", "3.txt"))
    entered = ChunkVector.objects.order_by("indexed").values_list("document_id", "indexed")
    held = [[is_in for document, is_in in entered if document == row.pk] for row in rows]
    assert held[:2] == [[False], [False]]
    # One more may wait, so the rest of the long document goes in at once, and so does what comes after it.
    assert len(held[2]) > 2
    assert held[2] == [False] + [True] * (len(held[2]) - 1)
    assert held[3] == [True]


def _same(found: list[Passage], before: list[Passage]) -> bool:
    return [(p.chunk_id, p.score) for p in found] == [(p.chunk_id, p.score) for p in before]


def test_the_index_serves_the_approximate_plan(
    put: Put, twin: TwinEmbedder, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("One note about a subject.")
    space = EmbeddingSpace.objects.get()
    sql = nearest.filled(nearest._APPROXIMATE, space, "")
    parameters = scope.scope_of(viewer, None).parameters()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute(
            "EXPLAIN " + sql + nearest._RANKED,
            {**parameters, "space": space.pk, "vector": str([0.1] * space.dimension), "limit": 5},
        )
        lines = "\n".join(row[0] for row in cursor.fetchall())
    assert f"retrieval_vector_hnsw_{space.pk.hex}" in lines
    # Never by its collections: the planner takes any number of them for ten.
    assert "(ANY (collection_id = (hashed SubPlan 1).col1)) IS TRUE" in lines.partition("CTE fresh")[0]


@pytest.mark.parametrize(
    ("chunks", "stored", "compared"),
    [
        (2_000, 1_000_000, True),
        (10_000, 1_000_000, True),
        (50_000, 1_000_000, False),
        (500_000, 1_000_000, False),
    ],
)
def test_few_in_reach_are_compared_and_many_walked(chunks: int, stored: int, compared: bool) -> None:
    assert scope.Reach(chunks, stored).exact is compared


@pytest.mark.parametrize(("least", "found"), [(-1.0, 1), (0.999, 0)])
def test_below_the_threshold_nothing_is_found(
    put: Put, twin: TwinEmbedder, viewer: Viewer, least: float, found: int
) -> None:
    put("One note about a subject.")
    EmbeddingSpace.objects.update(min_similarity=least)
    assert len(find("something else", viewer)) == found


def test_a_passage_names_every_page_it_stands_on(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    put(
        pdf_of([["A survey of canals."], ["The lock of Vicksburg was dug by hand."], ["It was never used."]]),
        "a.pdf",
    )
    put("The lock of Vicksburg has no pages here.", "a.txt")
    told = {p.title: (p.page, p.page_end) for p in find("the lock of Vicksburg", viewer)}
    assert told == {"a.pdf": (1, 3), "a.txt": (None, None)}


def test_a_question_is_met_on_any_page_of_its_chunk(put: Put, twin: TwinEmbedder, viewer: Viewer) -> None:
    put(
        pdf_of([["A survey of canals."], ["The lock of Vicksburg was dug by hand."], ["It was never used."]]),
        "a.pdf",
    )
    (chunk,) = Chunk.objects.values_list("pk", flat=True)
    (hit,) = hits(scope.scope_of(viewer, None), {chunk: 1.0})
    met = [Expected("Which?", "a.pdf", page).met_by(hit) for page in (1, 2, 3, 4)]
    assert met == [True, True, True, False]


def test_nothing_is_embedded_when_nothing_can_be_found(
    put: Put, twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    assert find("one note", viewer) == []
    put("One note about a subject.")
    asked = len(twin.payers)
    assert find("  ", viewer) == []
    assert find("one note", viewer, limit=0) == []
    empty = collection_create(name="Empty", team_id=TEAM, created_by=PERSON)
    assert find("one note", viewer, empty) == []
    assert len(twin.payers) == asked


def test_another_model_is_not_compared(
    put: Put, twin: TwinEmbedder, viewer: Viewer, settings: object
) -> None:
    """The question goes to the model of the stored vectors, whatever the settings name now; else to none."""
    put("One note about a subject.")
    settings.EMBEDDING_MODEL = "another"  # type: ignore[attr-defined]
    assert len(find("one note", viewer)) == 1
    twin.models = {"another"}
    with pytest.raises(Refusal, match="serves twin"):
        find("one note", viewer)


def test_the_real_embedder_finds_the_passage_in_another_language(
    put: Put, real_embedder: None, viewer: Viewer
) -> None:
    put("The annual leave of every employee is thirty working days.", "leave.txt")
    put("Der Drucker im zweiten Stock druckt nur schwarz auf weiß.", "printer.txt")
    put("Lunch is served between noon and two in the canteen.", "lunch.txt")
    assert find("Wie viele Urlaubstage habe ich?", viewer)[0].title == "leave.txt"
    assert find("Can I print in colour?", viewer)[0].title == "printer.txt"


def test_quotes_are_word_for_word_and_from_the_right_passage(
    put: Put, real_embedder: None, viewer: Viewer
) -> None:
    put(
        "Welcome to the house of many rooms. The annual leave is thirty working days. Ask at the desk for keys.",
        "a.txt",
    )
    put("Lunch is served between noon and two. The canteen is on the ground floor.", "b.txt")
    passages = find("How many days of leave?", viewer)
    quotes = async_to_sync(quote_sentences)(
        question="How many days of leave do I have?", passages=passages, limit=2, payer=None
    )
    assert len(quotes) == 2
    assert quotes[0].text == "The annual leave is thirty working days."
    assert all(quote.text in passages[quote.number - 1].text for quote in quotes)

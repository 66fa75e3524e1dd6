"""Another embedding model: built beside the old one, switched to at once, and back again."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from retrieval import batches, rebuild, removal, services
from retrieval.collections import collection_create
from retrieval.errors import Conflict
from retrieval.models import ChunkVector, Collection, Document, EmbeddingSpace
from retrieval.types import Viewer
from tests.integration.retrieval.conftest import PERSON, Put, find
from tests.integration.retrieval.embedders import Refusal, TwinEmbedder

pytestmark = pytest.mark.django_db
TEXTS = ("The fee is twelve euros.", "The pump is blue.", "Lunch is at noon.")


@pytest.fixture
def stored(put: Put, twin: TwinEmbedder) -> list[Document]:
    """Three documents in the first model, and a second model that gives other, shorter vectors."""
    rows = [put(text, f"{number}.txt") for number, text in enumerate(TEXTS)]
    # What the commits would have checked by now; an index is not made beside open checks.
    connection.check_constraints()
    twin.models, twin.dimensions = {"twin", "second"}, {"second": 64}
    return rows


def begin() -> EmbeddingSpace:
    space = rebuild.space_begin(model="second", dimension=64, query_prefix="q: ", passage_prefix="p: ")
    connection.check_constraints()
    return space


def states() -> dict[str, str]:
    return dict(EmbeddingSpace.objects.values_list("model", "state"))


def test_the_old_model_serves_until_the_new_one_is_whole(
    stored: list[Document], twin: TwinEmbedder, viewer: Viewer, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field fault A16: a model with another size breaks the index."""
    monkeypatch.setattr(batches, "BATCH_TEXTS", 2)
    space = begin()
    left = iter([True, False])
    twin.asked.clear()
    assert rebuild.space_fill(space, go_on=lambda: next(left)) is False
    assert twin.asked == [("second", ["p: " + text for text in TEXTS[:2]])]
    assert find("fee euros", viewer)[0].text == TEXTS[0]
    assert twin.asked[-1] == ("twin", ["query: fee euros"])

    late = put("The door is red.")
    assert rebuild.space_switch(space) is False
    assert rebuild.space_fill(space) is True
    assert rebuild.space_progress(space) == (4, 4)
    # What was embedded before the interruption was not embedded again.
    assert [texts for model, texts in twin.asked if model == "second"][1:] == [
        ["p: " + TEXTS[2], "p: The door is red."]
    ]
    assert rebuild.space_switch(space) is True
    assert states() == {"twin": "standby", "second": "active"}
    assert find("door red", viewer)[0].document_id == late.pk
    assert twin.asked[-1] == ("second", ["q: door red"])


def test_going_back_embeds_only_what_came_in_since(
    stored: list[Document], twin: TwinEmbedder, viewer: Viewer, put: Put
) -> None:
    space = begin()
    assert rebuild.space_fill(space)
    assert rebuild.space_switch(space)
    since = put("The door is red.")
    assert ChunkVector.objects.filter(document_id=since.pk).values_list("space__model", flat=True).get() == (
        "second"
    )
    twin.asked.clear()
    told = StringIO()
    call_command("embedding_space_build", "--back", stdout=told)
    assert "twin serves now" in told.getvalue()
    assert twin.asked == [("twin", ["passage: The door is red."])]
    assert states() == {"twin": "active", "second": "standby"}
    assert {p.text for p in find("fee door", viewer)} >= {TEXTS[0], "The door is red."}


def test_a_document_that_was_under_way_at_the_switch_is_embedded_in_the_new_space(
    stored: list[Document], twin: TwinEmbedder, viewer: Viewer, collection: Collection
) -> None:
    space = begin()
    assert rebuild.space_fill(space)
    row, _ = services.document_create(
        collection=collection, name="late.txt", content=b"The door is red.", created_by=PERSON
    )

    def switched() -> None:
        twin.before = lambda: None
        assert rebuild.space_switch(space)

    twin.before = switched
    assert services.document_ingest(row.pk) == "ready"
    assert [v.space for v in ChunkVector.objects.filter(document_id=row.pk)] == [space]
    assert find("door red", viewer)[0].document_id == row.pk


def test_the_same_text_of_a_team_is_embedded_once(
    put: Put, twin: TwinEmbedder, collection: Collection
) -> None:
    other = collection_create(name="Other", team_id=collection.team_id, created_by=PERSON)
    put(TEXTS[0])
    put(TEXTS[0], into=other)
    connection.check_constraints()
    twin.models, twin.dimensions = {"twin", "second"}, {"second": 64}
    space = begin()
    twin.asked.clear()
    assert rebuild.space_fill(space)
    assert twin.asked == [("second", ["p: " + TEXTS[0]])]
    assert rebuild.space_progress(space) == (2, 2)


def test_a_removed_document_leaves_both_spaces(stored: list[Document], twin: TwinEmbedder) -> None:
    space = begin()
    rebuild.space_fill(space)
    receipt = removal.document_remove(document=stored[0], done_by=PERSON)
    assert receipt.counts["vectors"] == 2
    assert rebuild.space_progress(space) == (2, 2)
    assert ChunkVector.objects.count() == 4


def test_a_space_that_is_given_up_is_gone_with_its_index(stored: list[Document], twin: TwinEmbedder) -> None:
    space = begin()
    rebuild.space_fill(space)
    with pytest.raises(Conflict, match="in use"):
        rebuild.space_drop(EmbeddingSpace.objects.get(model="twin"))
    connection.check_constraints()
    assert rebuild.space_drop(space) == 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_indexes WHERE indexname LIKE %s", [f"%{space.pk.hex}"])
        assert cursor.fetchone() == (0,)
    assert states() == {"twin": "active", "second": "retired"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--back",), "nothing to go back to"),
        (("--model", "twin", "--dimension", "384"), "in use already"),
        (("--model", "second"), "--dimension"),
        (("--model", "nobody", "--dimension", "384"), "No server serves nobody"),
        (("--model", "twin", "--dimension", "12"), "12"),
        (("--drop", "fourth"), "no vectors of fourth"),
    ],
)
def test_what_cannot_be_built_is_said(
    stored: list[Document], twin: TwinEmbedder, arguments: tuple[str, ...], says: str
) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("embedding_space_build", *arguments)
    assert states() == {"twin": "active"}


def test_only_one_model_is_built_at_a_time_and_the_clock_goes_on_with_it(
    stored: list[Document], twin: TwinEmbedder
) -> None:
    assert rebuild.spaces_advance(go_on=lambda: True) == ""
    begin()
    with pytest.raises(Conflict, match="second is being built"):
        rebuild.space_begin(model="third", dimension=8, query_prefix="", passage_prefix="")
    assert rebuild.spaces_advance(go_on=lambda: False) == "building"
    assert rebuild.spaces_advance(go_on=lambda: True) == "active"


def test_a_model_that_no_server_serves_changes_nothing(stored: list[Document], twin: TwinEmbedder) -> None:
    space = begin()
    twin.models = {"twin"}
    with pytest.raises(Refusal, match="second"):
        rebuild.space_fill(space)
    assert states() == {"twin": "active", "second": "building"}

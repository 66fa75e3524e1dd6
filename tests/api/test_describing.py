"""documents/{id}/: tags and fields of one's own, which narrow lists and searches and outlive reading anew."""

import pytest

from retrieval.describing import MOST_TAGS
from retrieval.models import Document
from retrieval.services import document_create, document_ingest, document_reread
from tests.factories import collection_make, key_make, user_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]
PAGE = b"<html><title>Pumps</title><body><p>The blue pump delivers forty litres a minute.</p></body>"


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def document(user, team):
    row, _ = document_create(
        collection=collection_make(team=team, user=user), name="pumps.html", content=PAGE, created_by="user:x"
    )
    return row


def _patch(client, document, **changes):
    return client.patch(f"/api/v1/documents/{document.pk}/", changes, format="json")


def test_what_is_set_is_shown_and_the_rest_stays(client, document):
    answer = _patch(
        client, document, tags=["manual", " pumps  2024 ", "manual"], metadata={"author": "Ada", "year": 2024}
    )
    assert answer.status_code == 200
    assert answer.json()["tags"] == ["manual", "pumps 2024"]
    only = _patch(client, document, metadata={"year": 2025}).json()
    assert (only["tags"], only["metadata"]["year"], "author" in only["metadata"]) == (
        ["manual", "pumps 2024"],
        2025,
        False,
    )
    assert _patch(client, document, tags=[]).json()["tags"] == []


def test_a_list_is_narrowed_by_tags_names_and_status(client, document):
    _patch(client, document, tags=["manual", "blue"])
    Document.objects.filter(pk=document.pk).update(name="pumps_2024%.txt", title="Überblick", status="failed")
    place = f"/api/v1/collections/{document.collection_id}/documents/"
    shown = [
        len(client.get(f"{place}?{query}").json()["items"])
        for query in (
            "tag=blue",
            "tag=blue&tag=manual",
            "tag=red",
            "name=PUMPS_",
            "name=%C3%BCBER",
            "name=4%25&status=failed",
            "name=x%25x",
            "name=%00",
            "status=failed&status=queued",
            "status=ready",
        )
    ]
    assert shown == [1, 1, 0, 1, 1, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"tags": ["x"] * 3 + [str(n) for n in range(MOST_TAGS)]},
        {"tags": ["y" * 101]},
        {"tags": ["  "]},
        {"metadata": {"tags": ["a"]}},
        {"metadata": {"long": "z" * 10_000}},
        {"metadata": {"nul": "a\x00b"}},
    ],
)
def test_what_cannot_be_set_changes_nothing(client, document, changes):
    _patch(client, document, tags=["kept"])
    answer = _patch(client, document, **changes)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
    assert Document.objects.get().described == {"tags": ["kept"]}


def test_only_who_may_write_sets_it(client_for, document):
    stranger = user_make()
    other = client_for(key_make(user=stranger, team=stranger.default_team))
    assert _patch(other, document, tags=["mine"]).status_code == 404
    assert Document.objects.get().described == {}


@pytest.mark.usefixtures("chat_target")
def test_it_outlives_reading_anew_and_narrows_a_search(client, document):
    _patch(client, document, tags=["manual"], metadata={"year": 2024})
    document_ingest(document.pk)
    document_reread(document=Document.objects.get())
    document_ingest(document.pk)
    row = Document.objects.get()
    assert (row.status, row.metadata["tags"], row.metadata["year"]) == ("ready", ["manual"], 2024)

    def found(**filters):
        ask = {"query": "What does the blue pump deliver?", "filters": filters}
        return len(client.post("/api/v1/search/", ask, format="json").json()["items"])

    assert [found(tags=["manual"]), found(tags=["other"])] == [1, 0]
    assert [found(metadata={"year": 2024}), found(metadata={"year": 2023})] == [1, 0]

"""search/: rights, bad input, who pays."""

import pytest

from app.accounts.selectors import caller_by_user
from app.billing.selectors import spend
from app.catalog.models import Backend, Deployment
from app.chat.asking import ask_draft
from app.common.errors import NotAllowed
from app.common.models import uuid7
from retrieval.collections import grant_set
from retrieval.services import document_ingest
from tests.factories import collection_make, document_make, team_make, user_make

pytestmark = pytest.mark.django_db
SEARCH = "/api/v1/search/"


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": "x" * 8001}, "query"),
        ({"query": "pumps", "limit": 0}, "limit"),
        ({"query": "pumps", "limit": 51}, "limit"),
        ({"query": "pumps", "collections": ["x"]}, "collections"),
        ({"query": "pumps", "filters": {"since": "yesterday"}}, "filters"),
    ],
)
def test_a_wrong_field_is_named(client, body, field):
    answer = client.post(SEARCH, body, format="json")
    assert answer.status_code == 422
    assert field in answer.json()["error"]["detail"]["fields"]


def test_a_foreign_collection_is_not_found_and_named_by_its_id_alone(client, chat_target):
    stranger = user_make()
    foreign = collection_make(team=stranger.default_team, user=stranger)
    answer = client.post(SEARCH, {"query": "pumps", "collections": [str(foreign.pk)]}, format="json")
    assert answer.status_code == 404
    assert str(foreign.pk) in answer.json()["error"]["message"]
    assert foreign.name not in answer.content.decode()


def test_an_empty_list_of_collections_finds_nothing_and_costs_nothing(client, chat_target):
    answer = client.post(SEARCH, {"query": "pumps", "collections": []}, format="json")
    assert answer.json() == {"items": [], "next": None}
    assert spend(group_by="kind") == []


@pytest.mark.django_db(transaction=True)
def test_the_embedding_of_the_query_is_booked_to_the_team(client, user, team, chat_target, originals_dir):
    _ready(user, team)
    assert client.post(SEARCH, {"query": "pumps"}, format="json").status_code == 200
    (row,) = spend(group_by="kind", account_id=user.account_id)
    assert (row.group, row.price > 0, row.requests) == ("embedding", True, 0)


@pytest.mark.django_db(transaction=True)
def test_without_the_embedder_the_answer_names_it(client, user, team, chat_target, originals_dir):
    _ready(user, team)
    Backend.objects.filter(name="Test embedding server").update(base_url="http://127.0.0.1:1/v1")
    answer = client.post(SEARCH, {"query": "pumps"}, format="json")
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert (error["code"], error["detail"]["part"]) == ("embedder_unavailable", "embedder")


@pytest.mark.django_db(transaction=True)
def test_filters_narrow_what_is_found(client, user, team, chat_target, originals_dir):
    _ready(user, team)

    def texts(**filters):
        answer = client.post(SEARCH, {"query": "pumps", "filters": filters}, format="json")
        return [passage["text"] for passage in answer.json()["items"]]

    assert texts(languages=["en"]) == ["The pump is blue."]
    assert [texts(languages=["de"]), texts(metadata={"a": 1}), texts(documents=[])] == [[], [], []]


@pytest.mark.django_db(transaction=True)
def test_a_question_goes_only_to_an_embedder_cleared_for_what_is_searched(
    client, user, team, chat_target, originals_dir
):
    _ready(user, team)
    private = collection_make(team=team, user=user, level="private")
    embedders = Deployment.objects.filter(purpose="embedding")
    embedders.update(clearance="internal")
    # Nothing private to be found yet.
    assert client.post(SEARCH, {"query": "pumps"}, format="json").status_code == 200
    embedders.update(clearance="private")
    assert document_ingest(document_make(collection=private, content=b"The pump is secret.").pk) == "ready"
    assert client.post(SEARCH, {"query": "pumps"}, format="json").status_code == 200
    embedders.update(clearance="internal")
    for collections in (None, [str(private.pk)]):
        answer = client.post(SEARCH, {"query": "pumps", "collections": collections}, format="json")
        assert answer.status_code == 503
        assert "private content" in answer.json()["error"]["message"]


@pytest.mark.django_db(transaction=True)
def test_a_question_of_a_private_team_stays_with_private_embedders(
    client, user, team, chat_target, originals_dir
):
    _ready(user, team)
    team.level = "private"
    team.save()
    Deployment.objects.filter(purpose="embedding").update(clearance="internal")
    answer = client.post(SEARCH, {"query": "pumps"}, format="json")
    assert answer.status_code == 503
    assert "private content" in answer.json()["error"]["message"]


@pytest.mark.django_db(transaction=True)
def test_what_a_private_team_owns_stays_private_whoever_asks_and_when_it_is_put_in(
    client, user, team, chat_target, originals_dir
):
    """The team's level binds its collections, whatever these say: when they are shared, and when embedded."""
    owner = user_make()
    theirs = team_make(owner=owner)
    shelf = collection_make(team=theirs, user=owner, level="public")
    assert document_ingest(document_make(collection=shelf, content=b"The pump is secret.").pk) == "ready"
    grant_set(collection=shelf, principal=f"team:{team.id}", verb="read", created_by="tests")
    Deployment.objects.update(clearance="internal")
    body = {"query": "pumps", "collections": [str(shelf.pk)]}
    assert client.post(SEARCH, body, format="json").status_code == 200
    theirs.level = "private"
    theirs.save()
    assert client.post(SEARCH, body, format="json").status_code == 503
    with pytest.raises(NotAllowed, match="not cleared for private content"):
        ask_draft(
            caller=caller_by_user(user), conversation_id=None, team_id=None, turn_id=uuid7(), request_id="",
            text="Is it?", model=chat_target.public_name, collections=[shelf.pk],
        )  # fmt: skip
    late = document_make(collection=shelf, content=b"The valve is secret too.")
    document_ingest(late.pk)
    late.refresh_from_db()
    assert (late.status, late.chunk_count) == ("failed", 0)
    assert "private content" in late.error_message


def _ready(user, team):
    """One real document to be found, so that a search has a space to search in."""
    document = document_make(collection=collection_make(team=team, user=user), content=b"The pump is blue.")
    assert document_ingest(document.pk) == "ready"

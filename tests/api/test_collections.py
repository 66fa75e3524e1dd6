"""collections/ and their grants."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from app.accounts.models import Membership, Role
from app.accounts.selectors import caller_by_user, viewer_of
from app.api.collections import collections_shown
from retrieval.collections import grant_set
from retrieval.models import Collection
from retrieval.selectors import collection_verbs
from retrieval.types import VERBS
from tests.factories import collection_make, document_make, key_make, team_make, user_make

pytestmark = pytest.mark.django_db
COLLECTIONS = "/api/v1/collections/"


def _make(client, **body):
    return client.post(COLLECTIONS, {"name": "Handbook"} | body, format="json")


def test_a_collection_is_made_found_changed_and_removed(client_for, api_key, team):
    client = client_for(api_key)
    made = _make(client, description="All about pumps", level="private")
    assert made.status_code == 201
    identity = made.json()["id"]
    assert made["Location"] == f"{COLLECTIONS}{identity}/"
    assert made.json()["team"] == {"id": str(team.id), "name": team.name}
    assert made.json()["verbs"] == ["read", "write", "manage"]
    assert [item["id"] for item in client.get(COLLECTIONS).json()["items"]] == [identity]
    changed = client.patch(f"{COLLECTIONS}{identity}/", {"name": "Manual"}, format="json").json()
    assert (changed["name"], changed["level"], changed["description"]) == (
        "Manual",
        "private",
        "All about pumps",
    )
    assert client.delete(f"{COLLECTIONS}{identity}/").status_code == 204
    assert client.get(f"{COLLECTIONS}{identity}/").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"level": "secret"}, "level"),
        ({"team": "x"}, "team"),
    ],
)
def test_a_wrong_field_is_named(client_for, api_key, body, field):
    answer = _make(client_for(api_key), **body)
    assert answer.status_code == 422
    assert field in answer.json()["error"]["detail"]["fields"]


def test_a_name_is_taken_once_a_team(client_for, api_key):
    assert _make(client_for(api_key)).status_code == 201
    answer = _make(client_for(api_key), name="handbook")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"


@pytest.mark.parametrize(
    ("role", "verbs", "patch"),
    [
        (Role.VIEWER, ["read"], 403),
        (Role.MEMBER, ["read", "write"], 403),
        (Role.ADMIN, ["read", "write", "manage"], 200),
    ],
)
def test_the_role_in_the_team_decides_what_one_may_do(client_for, role, verbs, patch):
    owner = user_make()
    team = team_make(owner=owner)
    collection = collection_make(team=team, user=owner)
    client = client_for(key_make(user=user_make(team=team, role=role), team=team))
    assert client.get(f"{COLLECTIONS}{collection.pk}/").json()["verbs"] == verbs
    answer = client.patch(f"{COLLECTIONS}{collection.pk}/", {"name": "New"}, format="json")
    assert answer.status_code == patch
    assert client.delete(f"{COLLECTIONS}{collection.pk}/").status_code == (204 if patch == 200 else 403)


def test_a_member_has_a_private_place_that_no_colleague_sees(client_for, user, team, originals_dir):
    """Field fault C11: in the personal team that everybody has; the team's own owner sees nothing of it."""
    member = user_make(team=team, role="member")
    mine, owners = (client_for(key_make(user=person, team=team)) for person in (member, user))
    own = member.teams.get(is_personal=True)
    made = mine.post(COLLECTIONS, {"name": "Mine", "team": str(own.id)}, format="json")
    assert made.status_code == 201
    path = f"{COLLECTIONS}{made.json()['id']}/"
    file = SimpleUploadedFile("diary.txt", b"Dear diary.")
    document = mine.post(f"{path}documents/", {"file": file}, format="multipart")
    assert document.status_code == 202
    assert [row["name"] for row in mine.get(COLLECTIONS).json()["items"]] == ["Mine"]
    assert owners.get(COLLECTIONS).json()["items"] == []
    for hidden in (path, f"{path}documents/", f"/api/v1/documents/{document.json()['id']}/"):
        assert owners.get(hidden).status_code == 404


def test_who_leaves_the_team_loses_the_collection_they_made(client_for, team):
    maker = user_make(team=team, role=Role.ADMIN)
    key = key_make(user=maker, team=maker.teams.exclude(id=team.id).get())
    identity = _make(client_for(key), team=str(team.id)).json()["id"]
    assert client_for(key).get(f"{COLLECTIONS}{identity}/").status_code == 200
    Membership.objects.filter(user=maker, team=team).delete()
    assert client_for(key).get(f"{COLLECTIONS}{identity}/").status_code == 404


def test_a_list_goes_on_where_the_page_before_ended(client_for, api_key, user, team):
    made = [str(collection_make(team=team, user=user).pk) for _ in range(5)]
    client = client_for(api_key)
    seen, cursor = [], ""
    for _ in range(3):
        part = client.get(COLLECTIONS, {"limit": 2, "cursor": cursor}).json()
        seen += [item["id"] for item in part["items"]]
        cursor = part["next"]
    assert cursor is None
    assert seen == made[::-1]


@pytest.mark.parametrize(
    "query",
    [{"limit": "0"}, {"limit": "201"}, {"limit": "ten"}, {"limit": "²"}, {"cursor": "!"}, {"cursor": "abc"}],
)
def test_a_page_that_cannot_be_is_refused(client_for, api_key, query):
    answer = client_for(api_key).get(COLLECTIONS, query)
    assert answer.status_code == 422
    assert answer.json()["error"]["detail"]["field"] in query


def test_documents_are_counted_and_attachments_are_not_listed(client_for, api_key, user, team, originals_dir):
    collection = collection_make(team=team, user=user)
    document_make(collection=collection)
    document_make(collection=collection)
    private = collection_make(team=team, user=user)
    Collection.objects.filter(pk=private.pk).update(kind="conversation")
    items = client_for(api_key).get(COLLECTIONS).json()["items"]
    assert [(item["id"], item["document_count"]) for item in items] == [(str(collection.pk), 2)]


def test_a_grant_opens_a_collection_to_another_team_and_closes_it_again(client_for, api_key, user, team):
    other = team_make(owner=(reader := user_make()))
    collection = collection_make(team=team, user=user)
    path, outside = f"{COLLECTIONS}{collection.pk}/", client_for(key_make(user=reader, team=other))
    grants = client_for(api_key)
    assert outside.get(path).status_code == 404
    put = grants.put(f"{path}grants/", {"principal": f"team:{other.id}", "verb": "read"}, format="json")
    assert {"principal": f"team:{other.id}", "verb": "read"}.items() <= put.json()["items"][-1].items()
    assert outside.get(path).json()["verbs"] == ["read"]
    assert outside.get(f"{path}grants/").status_code == 403
    grants.put(f"{path}grants/", {"principal": f"team:{other.id}", "verb": None}, format="json")
    assert outside.get(path).status_code == 404


def test_a_colleague_is_named_by_address_and_a_stranger_is_not_known(client_for, api_key, user, team):
    colleague, stranger = user_make(team=team), user_make()
    collection = collection_make(team=team, user=user)
    path = f"{COLLECTIONS}{collection.pk}/grants/"
    grants = client_for(api_key)
    put = grants.put(path, {"email": colleague.email.upper(), "verb": "write"}, format="json").json()["items"]
    assert [(item["principal"], item["name"], item["verb"]) for item in put] == [
        (f"team:{team.id}", team.name, "manage"),
        (f"user:{colleague.id}", str(colleague), "write"),
    ]
    said = {
        grants.put(path, {"email": email, "verb": "read"}, format="json")
        .json()["error"]["message"]
        .replace(email, "")
        for email in (stranger.email, "nobody@example.org")
    }
    assert len(said) == 1
    assert "Nobody in your teams" in said.pop()
    both = {"email": colleague.email, "principal": f"user:{colleague.id}", "verb": "read"}
    assert grants.put(path, both, format="json").status_code == 422
    grants.put(path, {"principal": f"user:{uuid4()}", "verb": "read"}, format="json")
    assert grants.get(path).json()["items"][-1]["name"] is None


def test_a_page_of_collections_takes_as_many_queries_as_one(
    client_for, api_key, user, team, django_assert_num_queries
):
    client = client_for(api_key)
    collection_make(team=team, user=user)
    client.get("/api/v1/me/")  # the first use of a key is noted
    with CaptureQueriesContext(connection) as one:
        client.get(COLLECTIONS)
    for _ in range(5):
        collection_make(team=team, user=user)
    with django_assert_num_queries(len(one)):
        assert len(client.get(COLLECTIONS).json()["items"]) == 6


@pytest.mark.parametrize("role", Role.values)
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_shown_of_ones_rights_is_what_retrieval_says(role, verb):
    owner = user_make()
    collection = collection_make(team=team_make(owner=owner), user=owner)
    person = user_make(team=team_make(owner=user_make()), role=role)
    principal = f"team:{person.default_team_id}"
    grant_set(collection=collection, principal=principal, verb=verb, created_by=f"user:{owner.id}")
    caller = caller_by_user(person)
    (shown,) = collections_shown(caller, [collection])
    assert tuple(shown["verbs"]) == collection_verbs(viewer_of(caller), collection)


@pytest.mark.parametrize(
    "body", [{"principal": "everyone", "verb": "read"}, {"principal": "team:x", "verb": "own"}, {}]
)
def test_a_grant_that_cannot_be_is_refused(client_for, api_key, user, team, body):
    collection = collection_make(team=team, user=user)
    answer = client_for(api_key).put(f"{COLLECTIONS}{collection.pk}/grants/", body, format="json")
    assert answer.status_code == 422

"""Role × object × verb × door, generated: nobody reaches what no grant opens; an unknown id looks like a foreign one.

The house: team Alpha owns two collections with a document each; one of them is granted to team Beta for reading. Every
role of both teams, staff and a stranger try every verb by every door, and a model server notes what it is sent.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from app.accounts.models import Role, Team, User
from app.accounts.selectors import ALL_SCOPES
from app.chat import asking
from app.chat.models import Assistant
from app.gate.routing import memories_forget
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script, Seen
from retrieval.collections import grant_set
from retrieval.models import Collection, Document
from retrieval.services import document_ingest
from tests.api.scripted import call
from tests.factories import (
    IssuedKey,
    collection_make,
    conversation_make,
    document_make,
    key_make,
    team_make,
    user_make,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir", "chat_target")]
SECRET = "The vault of Alpha opens with the word marmalade."
RIGHTS = {
    # who: (on Alpha's own collection, on the one that Beta may read)
    "alpha owner": ("manage", "manage"),
    "alpha admin": ("manage", "manage"),
    "alpha member": ("write", "write"),
    "alpha viewer": ("read", "read"),
    "beta owner": (None, "read"),
    "beta admin": (None, "read"),
    "beta member": (None, "read"),
    "beta viewer": (None, "read"),
    "staff": (None, None),
    "stranger": (None, None),
}
VERBS = (None, "read", "write", "manage")
QUICK = {"alpha member", "beta member"}
"""Tried in every run; the whole matrix is a proof."""


def each(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.prove]) for name in names]


People = dict[str, tuple[User, Team]]


@dataclass(frozen=True)
class Place:
    """The two collections with their documents."""

    own: Collection
    shared: Collection
    documents: dict[UUID, Document]


@dataclass(frozen=True)
class Try:
    """One verb at one object: its request, the right it needs, and the answer when it is there."""

    name: str
    needs: str
    ask: Callable[[Any, Collection, Document], Any]
    status: int


def _file() -> Any:
    file = io.BytesIO(f"A new note, {uuid4()}.".encode())
    file.name = "note.txt"
    return file


def _v(path: str) -> str:
    return f"/api/v1/{path}"


TRIES = (
    Try("collection read", "read", lambda c, o, d: c.get(_v(f"collections/{o.pk}/")), 200),
    Try("documents list", "read", lambda c, o, d: c.get(_v(f"collections/{o.pk}/documents/")), 200),
    Try("document read", "read", lambda c, o, d: c.get(_v(f"documents/{d.pk}/")), 200),
    Try("document text", "read", lambda c, o, d: c.get(_v(f"documents/{d.pk}/text/")), 200),
    Try(
        "search",
        "read",
        lambda c, o, d: c.post(
            _v("search/"), {"query": "vault word", "collections": [str(o.pk)]}, format="json"
        ),
        200,
    ),
    Try(
        "upload",
        "write",
        lambda c, o, d: c.post(_v(f"collections/{o.pk}/documents/"), {"file": _file()}, format="multipart"),
        202,
    ),
    Try("retry", "write", lambda c, o, d: c.post(_v(f"documents/{d.pk}/retry/")), 409),
    Try("cancel", "write", lambda c, o, d: c.post(_v(f"documents/{d.pk}/cancel/")), 409),
    Try("grants list", "manage", lambda c, o, d: c.get(_v(f"collections/{o.pk}/grants/")), 200),
    Try(
        "share",
        "manage",
        lambda c, o, d: c.put(
            _v(f"collections/{o.pk}/grants/"),
            {"principal": f"user:{uuid4()}", "verb": "read"},
            format="json",
        ),
        200,
    ),
    Try("rename", "manage", lambda c, o, d: c.patch(_v(f"collections/{o.pk}/"), {}, format="json"), 200),
    Try(
        "replace",
        "write",
        lambda c, o, d: c.put(_v(f"documents/{d.pk}/file/"), {"file": _file()}, format="multipart"),
        202,
    ),
    Try("remove", "write", lambda c, o, d: c.delete(_v(f"documents/{d.pk}/")), 204),
    Try("erase", "manage", lambda c, o, d: c.post(_v(f"collections/{o.pk}/erase/")), 200),
)


@pytest.fixture
def people() -> People:
    owners = {name: user_make() for name in ("alpha", "beta")}
    teams = {name: team_make(owner=owner, name=name) for name, owner in owners.items()}
    found: dict[str, tuple[User, Team]] = {
        f"{name} owner": (owner, teams[name]) for name, owner in owners.items()
    }
    for name, team in teams.items():
        for role in (Role.ADMIN, Role.MEMBER, Role.VIEWER):
            found[f"{name} {role.value}"] = (user_make(team=team, role=role), team)
    for name in ("staff", "stranger"):
        person = user_make(is_staff=name == "staff")
        assert person.default_team is not None
        found[name] = (person, person.default_team)
    return found


@pytest.fixture
def place(people: People) -> Place:
    owner, alpha = people["alpha owner"]
    own = collection_make(team=alpha, user=owner, name="Alpha's own")
    shared = collection_make(team=alpha, user=owner, name="Shared with Beta")
    beta = people["beta owner"][1]
    grant_set(collection=shared, principal=f"team:{beta.id}", verb="read", created_by=f"user:{owner.id}")
    documents = {}
    for row in (own, shared):
        documents[row.pk] = document_make(collection=row, content=f"{SECRET} {row.name}".encode())
        assert document_ingest(documents[row.pk].pk) == "ready"
    return Place(own, shared, documents)


def key_of(people: People, who: str) -> IssuedKey:
    person, team = people[who]
    scopes = (*ALL_SCOPES, "staff") if who == "staff" else ALL_SCOPES
    return key_make(user=person, team=team, scopes=scopes)


def expected(attempt: Try, right: str | None) -> int:
    if right is None:
        return 404
    return attempt.status if VERBS.index(right) >= VERBS.index(attempt.needs) else 403


@pytest.mark.parametrize("who", each(RIGHTS))
def test_rest_answers_each_role_as_its_grants_say(
    who: str, people: People, place: Place, client_for: Any
) -> None:
    client = client_for(key_of(people, who))
    seen = {}
    for index, collection in enumerate((place.own, place.shared)):
        right = RIGHTS[who][index]
        document = place.documents[collection.pk]
        for attempt in TRIES:
            answer = attempt.ask(client, collection, document)
            seen[f"{attempt.name}, {collection.name}"] = (answer.status_code, expected(attempt, right))
            if right is None:
                assert "marmalade" not in answer.content.decode(), attempt.name
                assert collection.name not in answer.content.decode(), attempt.name
    assert {what: pair for what, pair in seen.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("who", each(name for name, rights in RIGHTS.items() if None in rights))
def test_a_foreign_id_and_an_unknown_one_look_the_same(
    who: str, people: People, place: Place, client_for: Any
) -> None:
    """Field fault A07: by guessed ids; no difference in status, code or words but the id itself."""
    client = client_for(key_of(people, who))
    document = place.documents[place.own.pk]
    nowhere = Collection(pk=uuid4()), Document(pk=uuid4())
    for attempt in TRIES:
        foreign, unknown = (
            attempt.ask(client, place.own, document),
            attempt.ask(client, *nowhere),
        )
        assert foreign.status_code == unknown.status_code == 404, attempt.name
        assert _words(foreign, place.own.pk, document.pk) == _words(unknown, *(row.pk for row in nowhere))


def _words(answer: Any, *ids: UUID) -> str:
    error = answer.json()["error"]
    text = f"{error['code']} {error['message']} {sorted(error['detail'])}"
    for identity in ids:
        text = text.replace(str(identity), "ID")
    return text


@pytest.mark.parametrize("who", each(RIGHTS))
def test_lists_and_unnamed_searches_show_only_what_is_granted(
    who: str, people: People, place: Place, client_for: Any
) -> None:
    client = client_for(key_of(people, who))
    names = {row["name"] for row in client.get(_v("collections/")).json()["items"]}
    rights = dict(zip((place.own.name, place.shared.name), RIGHTS[who], strict=True))
    may = {name for name, right in rights.items() if right}
    assert names == may
    # Whoever put them in (field fault B19).
    for row in (place.own, place.shared):
        listed = client.get(_v(f"collections/{row.pk}/documents/")).json().get("items", [])
        assert [item["id"] for item in listed] == [str(place.documents[row.pk].pk)] * (row.name in may)
    found = client.post(_v("search/"), {"query": "vault word marmalade"}, format="json").json()["items"]
    assert {item["collection_id"] for item in found} == {
        str(row.pk) for row in (place.own, place.shared) if row.name in may
    }


@pytest.mark.parametrize("who", each(RIGHTS))
def test_pages_and_the_api_of_a_signed_in_browser_follow_the_same_rule(
    who: str, people: People, place: Place
) -> None:
    person, _ = people[who]
    browser = Client()
    browser.force_login(person)
    for row, right in zip((place.own, place.shared), RIGHTS[who], strict=True):
        document = place.documents[row.pk]
        # The page is a frame: its content comes from the API, under the rights of the session.
        page, unknown = (
            browser.get(f"/documents/{identity}/").content.decode() for identity in (document.pk, uuid4())
        )
        assert "marmalade" not in page
        assert len(page) == len(unknown)
        answer = browser.get(_v(f"documents/{document.pk}/text/"))
        assert answer.status_code == (200 if right else 404)
        assert ("marmalade" in answer.content.decode()) == (right is not None)
    assert browser.get("/admin/retrieval/document/").status_code in {302, 404}


def test_files_that_a_key_of_a_team_attached_are_for_its_keys_alone(people: People, client_for: Any) -> None:
    """The conversation is for none of its people, so neither is what is attached to it."""
    owner, alpha = people["alpha owner"]
    key = key_make(user=None, team=alpha)
    conversation = conversation_make(user=None, team=alpha)
    file = {"file": io.BytesIO(SECRET.encode())}
    file["file"].name = "secret.txt"
    made = client_for(key).post(_v(f"conversations/{conversation.pk}/attachments/"), file, format="multipart")
    assert made.status_code == 202, made.content
    document = Document.objects.get(pk=made.json()["id"])
    assert document_ingest(document.pk) == "ready"
    found = {"query": "vault word marmalade"}
    for mine in (key_make(user=owner, team=alpha), key_of(people, "alpha viewer")):
        client = client_for(mine)
        assert client.get(_v(f"documents/{document.pk}/text/")).status_code == 404
        assert client.post(_v("search/"), found, format="json").json()["items"] == []
    other = client_for(key_make(user=None, team=alpha))
    assert other.get(_v(f"documents/{document.pk}/text/")).status_code == 200
    assert other.delete(_v(f"documents/{document.pk}/")).status_code == 204


DOORS = ("/v1", "turn")
SPENDERS = tuple(who for who in RIGHTS if not who.endswith("viewer"))


def ask(door: str, key: IssuedKey, model: str, collections: list[str] | None) -> tuple[Any, list[Seen]]:
    """One question by one door; what the chat server was sent."""
    # The chat server is at another port in each call.
    memories_forget()
    asking._cached_named.forget()
    asking._cached_targets.forget()
    named = {} if collections is None else {"collections": collections}
    script = Script(answer=Answer(words=("Fine.",)))
    body: dict[str, Any]
    if door == "/v1":
        body = {"model": model, "messages": [{"role": "user", "content": "Which word opens the vault?"}]}
        path = "/v1/chat/completions"
    else:
        row = conversation_make(user=key.row.user, team=key.row.team)
        body = {"text": "Which word opens the vault?", "model": model, "stream": False}
        path = _v(f"conversations/{row.pk}/turns/")
    return call("POST", path, script, key=key, only="Test chat server", json=body | named)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("who", each(SPENDERS))
def test_a_prompt_holds_nothing_its_asker_may_not_read(
    who: str, door: str, people: People, place: Place, chat_target: Any
) -> None:
    """Field faults A06 and C08: what reaches the model server is noted, for a named collection and for none."""
    key = key_of(people, who)
    for row, right in zip((place.own, place.shared), RIGHTS[who], strict=True):
        answer, sent = ask(door, key, chat_target.public_name, [str(row.pk)])
        prompts = b"".join(seen.body for seen in sent).decode()
        if right is None:
            assert (answer.status_code, sent) == (404, []), answer.text
            assert "marmalade" not in answer.text
        else:
            assert answer.status_code == 200, answer.text
            assert "marmalade" in prompts
    _, sent = ask(door, key, chat_target.public_name, None)
    assert "marmalade" not in b"".join(seen.body for seen in sent).decode()


def test_a_shared_assistant_reads_for_each_what_they_may_read_themselves(
    people: People, place: Place, chat_target: Any
) -> None:
    """Field fault B18: its collections are searched under the rights of whoever asks it, neither less nor more."""
    assistant = Assistant.objects.create(
        team=people["alpha owner"][1], name="A", slug="a", model=chat_target.public_name
    )
    assistant.shared_with.add(people["beta owner"][1])
    key = key_of(people, "beta member")
    for collection, may in ((place.shared, True), (place.own, False)):
        Assistant.objects.update(collections=[str(collection.pk)])
        answer, sent = ask("/v1", key, "assistant/a", None)
        assert answer.status_code == (200 if may else 404), answer.text
        assert ("marmalade" in b"".join(seen.body for seen in sent).decode()) is may

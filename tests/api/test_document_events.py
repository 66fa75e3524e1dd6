"""Progress of documents as events: told as it changes, to who may read it, for as long as it is listened to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from app.accounts.models import Membership, Role, Team, User
from app.api.stream import documents, sending
from app.api.stream.http import Responder
from retrieval.lease import Lease, lease_take
from retrieval.models import Collection, Document, Grant, Receipt, Status
from retrieval.removal import document_remove
from tests.api.scripted import application, bearer
from tests.factories import IssuedKey, collection_make, document_make, key_make, team_make, user_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir", "quick")]
Event = tuple[str, dict[str, Any]]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BUSY_SECONDS", 0.01)
    monkeypatch.setattr(documents, "QUIET_SECONDS", 0.01)


@pytest.fixture
def collection(user: User, team: Team) -> Collection:
    return collection_make(user=user, team=team)


@dataclass
class Heard:
    """What a listener heard, in events."""

    status: int = 0
    text: str = ""
    body: list[bytes] = field(default_factory=list)

    @property
    def all(self) -> list[Event]:
        frames = [frame for frame in b"".join(self.body).decode().split("\n\n") if "event: " in frame]
        return [(_line(frame, "event: "), json.loads(_line(frame, "data: "))) for frame in frames]

    @property
    def events(self) -> list[Event]:
        """What happened: all but from which moment on."""
        return [event for event in self.all if event[0] != "following"]

    @property
    def removed(self) -> list[str]:
        return [data["id"] for name, data in self.events if name == "removed"]

    @property
    def statuses(self) -> list[str]:
        return [data["status"] for name, data in self.events if name == "document"]

    @property
    def last_id(self) -> str:
        return b"".join(self.body).decode().rsplit("id: ", 1)[1].split("\n")[0]


def _line(frame: str, name: str) -> str:
    return next(line.removeprefix(name) for line in frame.split("\n") if line.startswith(name))


def listen(
    path: str,
    key: IssuedKey,
    *acts: tuple[Callable[[Heard], bool], Callable[[], object]],
    last: str = "",
    query: str = "",
) -> Heard:
    """Follow a stream, doing each act once its condition holds; after the last one the listener leaves, unless the
    stream ends by itself."""
    heard = Heard()
    headers = [(b"host", b"127.0.0.1"), (b"authorization", bearer(key)["Authorization"].encode())]
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "scheme": "http", "http_version": "1.1", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [*headers, *([(b"last-event-id", last.encode())] if last else [])],
    }  # fmt: skip

    async def story() -> None:
        left = asyncio.Event()

        async def receive() -> Any:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                heard.status = message["status"]
            else:
                heard.body.append(message["body"])

        stream = asyncio.ensure_future(application(scope, receive, send))
        async with asyncio.timeout(60):
            for holds, act in acts:
                while not holds(heard) and not stream.done():  # noqa: ASYNC110 - what the stream told
                    await asyncio.sleep(0.005)
                await sync_to_async(act)()
            left.set()
            await stream

    async_to_sync(story)()
    return heard


def nothing() -> None:
    """The listener has heard enough."""


def taken(document: Document) -> Lease:
    lease = lease_take(document.pk)
    assert lease is not None
    return lease


def test_a_document_is_followed_until_it_is_ready(api_key: IssuedKey, collection: Collection) -> None:
    row = document_make(collection=collection)
    heard = listen(
        f"/api/v1/documents/{row.pk}/events/",
        api_key,
        (lambda heard: heard.statuses == ["queued"], lambda: taken(row).write(status=Status.READY)),
        (lambda heard: heard.events[-1][0] == "done", nothing),
    )
    assert (heard.status, heard.statuses) == (200, ["queued", "ready"])
    assert heard.events[-1] == ("done", {"status": "ready"})
    # One that has ended is told once.
    again = listen(f"/api/v1/documents/{row.pk}/events", api_key, (lambda heard: False, nothing))
    assert [name for name, _ in again.events] == ["document", "done"]


def test_progress_and_removal_are_told_and_nothing_twice(api_key: IssuedKey, collection: Collection) -> None:
    row = document_make(collection=collection)
    identity = str(row.pk)
    lease: list[Lease] = []

    def half() -> None:
        lease.append(taken(row))
        lease[0].write(status=Status.EMBEDDING, progress_done=5, progress_total=10)

    heard = listen(
        f"/api/v1/documents/{row.pk}/events/",
        api_key,
        (lambda heard: heard.statuses == ["queued"], half),
        (lambda heard: len(heard.statuses) == 2, row.delete),
        (lambda heard: heard.events[-1][0] == "removed", nothing),
    )
    assert heard.statuses == ["queued", "embedding"]
    assert heard.events[1][1]["progress"] == 0.5
    assert heard.events[2] == ("removed", {"id": identity})


def test_a_collection_tells_what_is_read_what_comes_and_what_fails(
    api_key: IssuedKey, collection: Collection, user: User, team: Team
) -> None:
    old = document_make(collection=collection, name="old.txt")
    Document.objects.filter(pk=old.pk).update(status="ready", updated_at="2026-01-01T00:00:00Z")
    reading = document_make(collection=collection, name="reading.txt")
    document_make(collection=collection_make(user=user, team=team), name="elsewhere.txt")
    lease = taken(reading)

    def fail() -> None:
        lease.write(
            status=Status.FAILED, error_step="parsing", error_code="empty", error_message="It is empty."
        )

    heard = listen(
        f"/api/v1/collections/{collection.pk}/events/",
        api_key,
        (
            lambda heard: heard.statuses == ["parsing"],
            lambda: document_make(collection=collection, name="new.txt"),
        ),
        (lambda heard: len(heard.events) == 2, fail),
        (lambda heard: len(heard.events) == 3, nothing),
    )
    assert [(data["name"], data["status"]) for _, data in heard.events] == [
        ("reading.txt", "parsing"),
        ("new.txt", "queued"),
        ("reading.txt", "failed"),
    ]
    assert heard.events[2][1]["error"]["message"] == "It is empty."


def test_who_comes_back_hears_what_changed_meanwhile(api_key: IssuedKey, collection: Collection) -> None:
    path = f"/api/v1/collections/{collection.pk}/events/"
    row = document_make(collection=collection)
    first = listen(path, api_key, (lambda heard: heard.statuses == ["queued"], nothing))
    before = timezone.now() - timedelta(hours=1)
    Document.objects.filter(pk=row.pk).update(status="ready", updated_at=before)
    other = partial(document_make, collection=collection, name="other.txt")
    heard = listen(
        path, api_key, (lambda heard: heard.status == 200, other), (lambda heard: bool(heard.events), nothing)
    )
    assert [data["name"] for _, data in heard.events] == ["other.txt"]
    Document.objects.all().update(status="ready", updated_at=before)
    row.refresh_from_db()
    row.save()
    back = listen(path, api_key, (lambda heard: bool(heard.events), nothing), last=first.last_id)
    assert back.statuses == ["ready"]


def test_the_removal_of_a_finished_document_is_told_once_and_to_who_comes_back(
    api_key: IssuedKey, collection: Collection, user: User, team: Team
) -> None:
    path = f"/api/v1/collections/{collection.pk}/events/"
    rows = [document_make(collection=collection, name=f"{n}.txt") for n in range(2)]
    elsewhere = document_make(collection=collection_make(user=user, team=team))
    Document.objects.all().update(status="ready", updated_at=timezone.now() - timedelta(hours=1))
    first, second = (str(row.pk) for row in rows)

    def remove(row: Document) -> None:
        document_remove(document=row, done_by="user:1")

    heard = listen(
        path,
        api_key,
        (lambda heard: heard.all == [("following", {"id": str(collection.pk)})], partial(remove, elsewhere)),
        (lambda heard: True, partial(remove, rows[0])),
        (
            lambda heard: heard.removed == [first],
            partial(document_make, collection=collection, name="new.txt"),
        ),
        # By then it has been looked at again.
        (lambda heard: bool(heard.statuses), nothing),
    )
    assert heard.removed == [first]
    # What happens while nobody listens is told to who names the last event, by header or in the address.
    remove(rows[1])
    told = (lambda heard: second in heard.removed, nothing)
    assert second in listen(path, api_key, told, last=heard.last_id).removed
    assert second in listen(path, api_key, told, query=f"after={heard.last_id}").removed
    Receipt.objects.filter(document_id=second).update(created_at=timezone.now() - timedelta(hours=1))
    later = listen(path, api_key, (lambda heard: bool(heard.events), nothing), query=f"after={heard.last_id}")
    assert second not in later.removed


def test_a_right_that_goes_ends_the_stream(api_key: IssuedKey, collection: Collection) -> None:
    document_make(collection=collection)
    heard = listen(
        f"/api/v1/collections/{collection.pk}/events/",
        api_key,
        (lambda heard: bool(heard.events), Grant.objects.filter(collection=collection).delete),
        (lambda heard: heard.events[-1][0] == "error", nothing),
    )
    assert heard.events[-1][1]["code"] == "not_found"


def test_who_leaves_the_team_hears_no_more_of_its_documents(api_key: IssuedKey, user: User) -> None:
    owner = user_make()
    theirs = team_make(owner=owner)
    membership = Membership.objects.create(user=user, team=theirs, role=Role.MEMBER)
    row = document_make(collection=collection_make(user=owner, team=theirs))
    for path in (f"collections/{row.collection_id}", f"documents/{row.pk}"):
        heard = listen(
            f"/api/v1/{path}/events/",
            api_key,
            (lambda heard: heard.statuses == ["queued"], membership.delete),
            (lambda heard: heard.events[-1][0] in {"error", "removed"}, nothing),
        )
        assert heard.statuses == ["queued"]
        assert heard.events[-1][0] == ("error" if path.startswith("collections") else "removed")
        membership.save(force_insert=True)


def test_an_end_that_is_committed_late_is_told(api_key: IssuedKey, collection: Collection) -> None:
    row = document_make(collection=collection)
    long_ago = timezone.now() - timedelta(minutes=1)
    end = partial(Document.objects.filter(pk=row.pk).update, status="ready", updated_at=long_ago)
    heard = listen(
        f"/api/v1/collections/{collection.pk}/events/",
        api_key,
        (lambda heard: heard.statuses == ["queued"], end),
        (lambda heard: len(heard.events) == 2, nothing),
    )
    assert heard.statuses == ["queued", "ready"]


def test_a_quiet_stream_is_kept_warm(
    api_key: IssuedKey, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "HEARTBEAT_SECONDS", 0.03)
    heard = listen(
        f"/api/v1/collections/{collection.pk}/events/",
        api_key,
        (lambda heard: b"".join(heard.body).count(b": still here") > 1, nothing),
    )
    assert not heard.events


def test_a_look_that_brings_nothing_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "HEARTBEAT_SECONDS", 0.03)
    written: list[bytes] = []

    async def write(frame: bytes) -> None:
        written.append(frame)

    async def looks() -> AsyncIterator[bytes]:
        while not written:
            yield b""
            await asyncio.sleep(0.001)

    async def story() -> None:
        async with asyncio.timeout(60):
            leaving = asyncio.get_running_loop().create_future()
            await sending._copy(cast(Responder, SimpleNamespace(write=write)), looks(), leaving)

    asyncio.run(story())
    assert written == [b": still here\n\n"]


def test_streams_end_by_themselves_when_the_process_goes_down(
    api_key: IssuedKey, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = document_make(collection=collection)
    for path in (f"/api/v1/collections/{collection.pk}/events/", f"/api/v1/documents/{row.pk}/events/"):
        with monkeypatch.context() as patched:
            down = partial(patched.setattr, documents, "runs", lambda: SimpleNamespace(draining=True))
            # Nobody leaves.
            heard = listen(
                path, api_key, (lambda heard: bool(heard.events), down), (lambda heard: False, nothing)
            )
            assert heard.statuses == ["queued"]


@pytest.mark.parametrize("kind", ["documents", "collections"])
def test_strangers_and_unknown_ids_hear_the_same(kind: str, collection: Collection) -> None:
    somebody = user_make()
    stranger = key_make(user=somebody, team=team_make(owner=somebody))
    row = document_make(collection=collection)
    mine = {"documents": row.pk, "collections": collection.pk}[kind]
    for identity in (mine, "00000000-0000-7000-8000-000000000000"):
        heard = listen(f"/api/v1/{kind}/{identity}/events/", stranger)
        assert heard.status == 404
        assert json.loads(b"".join(heard.body))["error"]["code"] == "not_found"

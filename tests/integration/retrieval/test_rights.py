"""Who may see and change what: decided by grants, in the statement that reads."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from retrieval import removal, selectors, services, storage
from retrieval.collections import collection_create, collection_update, grant_set
from retrieval.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from retrieval.models import Chunk, ChunkVector, Collection, Document, DocumentText, Grant
from retrieval.types import VERBS, Verb, Viewer
from tests.integration.retrieval.conftest import PERSON, TEAM, Put, find
from tests.integration.retrieval.embedders import TwinEmbedder

pytestmark = pytest.mark.django_db

OTHER = f"user:{UUID(int=9)}"
OTHER_TEAM = f"team:{UUID(int=8)}"


@pytest.mark.parametrize("verb", [None, *VERBS])
@pytest.mark.parametrize("principal", [OTHER, OTHER_TEAM])
def test_verbs_include_the_weaker_ones(collection: Collection, verb: Verb | None, principal: str) -> None:
    if verb:
        grant_set(collection=collection, principal=principal, verb=verb, created_by=PERSON)
    everything = frozenset({OTHER, OTHER_TEAM})
    viewer = Viewer(everything, writing=everything, managing=everything)
    allowed = VERBS[: VERBS.index(verb) + 1] if verb else ()
    assert selectors.collection_verbs(viewer, collection) == allowed
    doors = {
        "read": selectors.collection_get,
        "write": selectors.collection_writable,
        "manage": selectors.collection_manageable,
    }
    for asked, door in doors.items():
        if asked in allowed:
            assert door(viewer, collection.pk) == collection
        else:
            with pytest.raises(Forbidden if allowed else NotFound):
                door(viewer, collection.pk)


def test_a_teams_grant_counts_for_changing_only_where_the_role_allows_it(collection: Collection) -> None:
    team = f"team:{TEAM}"
    principals = frozenset({OTHER, team})
    assert selectors.collection_verbs(Viewer(principals), collection) == ("read",)
    member = Viewer(principals, writing=principals)
    assert selectors.collection_verbs(member, collection) == ("read", "write")
    admin = Viewer(principals, writing=principals, managing=principals)
    assert selectors.collection_verbs(admin, collection) == VERBS
    # A principal that is not one's own cannot be smuggled in.
    assert selectors.collection_verbs(Viewer(frozenset({OTHER}), managing=principals), collection) == ()


def test_who_made_a_collection_has_it_through_the_team_alone(collection: Collection) -> None:
    assert [(g.principal, g.verb) for g in collection.grants.all()] == [(f"team:{TEAM}", "manage")]
    former = frozenset({PERSON})
    assert selectors.collection_verbs(Viewer(former, writing=former, managing=former), collection) == ()


def test_unknown_and_unreadable_are_one_and_the_same(
    put: Put, twin: TwinEmbedder, collection: Collection, stranger: Viewer
) -> None:
    document = put("Secret words about the fee.")
    unknown = uuid4()

    def told(door: object, item: UUID) -> str:
        with pytest.raises(NotFound) as caught:
            door(stranger, item)  # type: ignore[operator]
        assert caught.value.detail["id"] == str(item)
        return caught.value.message.replace(str(item), "…")

    for door, item in [
        (selectors.collection_get, collection.pk),
        (selectors.collection_writable, collection.pk),
        (selectors.documents_list, collection.pk),
        (selectors.grants_list, collection.pk),
        (selectors.document_get, document.pk),
        (selectors.document_writable, document.pk),
        (lambda v, i: selectors.collections_resolve(v, [i]), collection.pk),
        (lambda v, i: find("fee", v, Collection(pk=i)), collection.pk),
    ]:
        assert told(door, item) == told(door, unknown)


def test_search_never_leaves_what_may_be_read(
    put: Put, twin: TwinEmbedder, collection: Collection, viewer: Viewer, stranger: Viewer
) -> None:
    put("The fee is twelve euros.")
    mine = collection_create(name="Mine", team_id=UUID(int=8), created_by=OTHER)
    put("My fee is one euro.", into=mine)
    other = Viewer(frozenset({OTHER, OTHER_TEAM}))
    assert {p.collection_id for p in find("fee", viewer)} == {collection.pk}
    assert {p.collection_id for p in find("fee", other)} == {mine.pk}
    assert find("fee", stranger) == []
    assert find("fee", Viewer(frozenset())) == []
    with pytest.raises(NotFound):
        # Not silently the readable half.
        find("fee", other, mine, collection)

    grant_set(collection=collection, principal=OTHER, verb="read", created_by=PERSON)
    assert {p.collection_id for p in find("fee", other, mine, collection)} == {mine.pk, collection.pk}
    grant_set(collection=collection, principal=OTHER, verb=None, created_by=PERSON)
    assert {p.collection_id for p in find("fee", other)} == {mine.pk}


def test_an_empty_document_leaves_nothing_to_answer_from(
    put: Put, twin: TwinEmbedder, viewer: Viewer
) -> None:
    foreign = collection_create(name="Foreign", team_id=uuid4(), created_by=OTHER)
    put("The fee is twelve euros.", into=foreign)
    assert put(" ", "scan.txt").status == "failed"
    assert find("fee", viewer) == []


def test_someone_can_always_manage_a_collection(collection: Collection) -> None:
    grant_set(collection=collection, principal=OTHER, verb="manage", created_by=PERSON)
    grant_set(collection=collection, principal=f"team:{TEAM}", verb=None, created_by=PERSON)
    with pytest.raises(Conflict, match="Nobody"):
        grant_set(collection=collection, principal=OTHER, verb=None, created_by=PERSON)
    assert Grant.objects.filter(collection=collection).count() == 1


@pytest.mark.parametrize("principal", ["", "user:1", "everyone", f"robot:{UUID(int=1)}"])
def test_principals_are_checked(collection: Collection, principal: str) -> None:
    with pytest.raises(Invalid):
        grant_set(collection=collection, principal=principal, verb="read", created_by=PERSON)


def test_names_are_unique_in_a_team_only(collection: Collection) -> None:
    with pytest.raises(Conflict, match="Choose another"):
        collection_create(name="HANDBOOK", team_id=TEAM, created_by=PERSON)
    twin = collection_create(name="Handbook", team_id=uuid4(), created_by=PERSON)
    with pytest.raises(Invalid):
        collection_update(collection=twin, level="secret")
    assert collection_update(collection=twin, name=" New \n name ", level="private").name == "New name"


def test_deleting_leaves_nothing_behind(
    put: Put, twin: TwinEmbedder, collection: Collection, viewer: Viewer
) -> None:
    shared = collection_create(name="Second", team_id=TEAM, created_by=PERSON)
    document, copy = put("Words to keep."), put("Words to keep.", into=shared)
    lone = put("Other words.", into=shared)

    receipt = removal.document_remove(document=document, done_by=PERSON)
    gone = {"documents": 1, "pages": 1, "chunks": 1, "vectors": 1, "drafts": 0, "originals": 0}
    assert (receipt.kind, receipt.document_id, receipt.counts) == ("removed", document.pk, gone)
    assert receipt.hashes == [document.sha256]
    assert storage.blob_size(copy.sha256)
    collection.refresh_from_db()
    assert collection.chunk_count == 0

    identity = shared.pk
    receipt = removal.collection_remove(collection=shared, done_by=PERSON)
    gone = {"documents": 2, "pages": 2, "chunks": 2, "vectors": 2, "drafts": 0, "originals": 2}
    assert (receipt.document_id, receipt.collection_id, receipt.counts) == (None, identity, gone)
    assert storage.blob_size(copy.sha256) is None
    assert storage.blob_size(lone.sha256) is None
    for model in (Document, DocumentText, Chunk, ChunkVector):
        assert not model._default_manager.exists()
    assert find("words", viewer) == []


def test_uploads_are_bounded_and_named_safely(
    twin: TwinEmbedder, collection: Collection, originals_dir: Path, settings: object
) -> None:
    settings.UPLOAD_MAX_BYTES = 100  # type: ignore[attr-defined]
    with pytest.raises(TooLarge) as caught:
        services.document_create(collection=collection, name="a.txt", content=b"x" * 101, created_by=PERSON)
    assert caught.value.detail == {"limit_bytes": 100}
    with pytest.raises(Invalid, match="empty"):
        services.document_create(collection=collection, name="a.txt", content=b"", created_by=PERSON)
    row, _ = services.document_create(
        collection=collection, name="../..\\etc/pass\x00wd\n.txt", content=b"x", created_by=PERSON
    )
    assert row.name == "pass wd .txt"
    assert [p.name for p in originals_dir.rglob("*") if p.is_file()] == [row.sha256]

"""Collections, viewers and embedders for retrieval."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from retrieval import patience, services
from retrieval.collections import collection_create
from retrieval.models import Collection, Document
from retrieval.search import search
from retrieval.types import Filters, Passage, Viewer
from tests.integration.retrieval import embedders

PERSON = f"user:{UUID(int=1)}"
TEAM = UUID(int=2)

pytestmark = pytest.mark.django_db


@pytest.fixture
def twin(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> embedders.TwinEmbedder:
    """The deterministic embedder, in place and empty; waiting between tries takes no time."""
    embedders.twin.reset()
    settings.RETRIEVAL_EMBEDDER = "tests.integration.retrieval.embedders.twin"
    settings.EMBEDDING_MODEL = "twin"
    monkeypatch.setattr(patience, "PAUSES", (0.0, 0.0))
    return embedders.twin


@pytest.fixture
def real_embedder(settings: Settings) -> None:
    settings.RETRIEVAL_EMBEDDER = "tests.integration.retrieval.embedders.real"


@pytest.fixture
def collection(db: None, originals_dir: Path) -> Collection:
    return collection_create(name="Handbook", team_id=TEAM, created_by=PERSON)


@pytest.fixture
def viewer() -> Viewer:
    """The person, who may manage what the team may."""
    mine = frozenset({PERSON, f"team:{TEAM}"})
    return Viewer(mine, writing=mine, managing=mine)


@pytest.fixture
def stranger() -> Viewer:
    return Viewer(frozenset({f"user:{uuid4()}", f"team:{uuid4()}"}))


Put = Callable[..., Document]


@pytest.fixture
def put(collection: Collection) -> Put:
    """Adds a document and ingests it at once; gives the row as it is afterwards."""

    def add(content: bytes | str, name: str = "notes.txt", into: Collection | None = None) -> Document:
        data = content if isinstance(content, bytes) else content.encode()
        row, _ = services.document_create(
            collection=into or collection, name=name, content=data, created_by=PERSON
        )
        services.document_ingest(row.pk)
        row.refresh_from_db()
        return row

    return add


def find(
    query: str, viewer: Viewer, *collections: Collection, limit: int = 5, filters: Filters | None = None
) -> list[Passage]:
    """Search from a sync test."""
    ids = [c.pk for c in collections] if collections else None
    return async_to_sync(search)(
        query=query, viewer=viewer, collection_ids=ids, limit=limit, payer=None, filters=filters
    )

"""The approximate index, built anew beside the one that serves."""

from io import StringIO
from urllib.parse import urlsplit

import pytest
from django.conf import settings as installed
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from retrieval import scope, spaces
from retrieval.models import EmbeddingSpace
from retrieval.types import Viewer
from tests.integration.retrieval.conftest import Put, find
from tests.integration.retrieval.embedders import TwinEmbedder
from tests.services_plugin import seat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(settings: Settings) -> None:
    """The command has a connection of its own, to the database of this test."""
    here = urlsplit(installed.DATABASE_OWNER_URL)
    settings.DATABASE_OWNER_URL = here._replace(path=f"/test_tessera_{seat()}").geturl()


def rebuilt(*words: str) -> str:
    said = StringIO()
    call_command("vector_index_rebuild", *words, stdout=said)
    return said.getvalue()


def indexes() -> dict[str, str]:
    """The approximate indexes and what they hold."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class c WHERE c.relname LIKE 'retrieval_vector_hnsw%'"
        )
        return {name: definition.partition(" WHERE ")[2] for name, definition in cursor.fetchall()}


@pytest.mark.usefixtures("owner")
def test_an_index_of_the_older_form_is_replaced_and_search_finds_the_same(
    put: Put, twin: TwinEmbedder, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope.Reach, "exact", False)
    for n in range(4):
        put(f"Note {n} is about subject{n} and nothing else.", f"{n}.txt")
    spaces.vectors_fold()
    space = EmbeddingSpace.objects.get()
    name, new = f"retrieval_vector_hnsw_{space.pk.hex}", f"retrieval_vector_hnsw_{space.pk.hex}_new"
    how = f"ON retrieval_chunkvector USING hnsw ((embedding::halfvec({space.dimension})) halfvec_ip_ops)"
    with connection.cursor() as cursor:
        # As they were once built, and one that an interrupted run left behind.
        cursor.execute(f"DROP INDEX {name}")
        cursor.execute(f"CREATE INDEX {name} {how} WHERE space_id = '{space.pk}'")
        cursor.execute(f"CREATE INDEX {new} {how} WHERE space_id = '{space.pk}'")
    before = [(p.chunk_id, p.score) for p in find("about subject2", viewer, limit=4)]
    assert len(before) == 4
    assert rebuilt("--list") == "twin (384): to be built anew.\n"
    assert "AND indexed" not in indexes()[name]
    assert "twin (384): built anew in" in rebuilt()
    assert list(indexes()) == [name]
    assert "AND indexed" in indexes()[name]
    assert [(p.chunk_id, p.score) for p in find("about subject2", viewer, limit=4)] == before
    assert rebuilt() == "twin (384): sound.\n"
    assert "built anew" in rebuilt("--all")
    assert list(indexes()) == [name]
    with pytest.raises(CommandError, match="Search goes on with the old one"):
        rebuilt("--all", "--memory", "a lot")

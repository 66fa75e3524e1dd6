"""A budget used up in the middle of a document: told, and nothing is paid for twice when there is room again."""

from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from app.accounts.models import Team, User
from app.billing.services import bootstrap_defaults, budget_set, price_set
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put
from retrieval import services
from retrieval.models import Chunk, EmbeddingDraft
from tests.factories import EMBEDDING_PRICE, collection_make, team_make
from tests.integration.retrieval.counting import CountingProxy

pytestmark = pytest.mark.django_db


def served(settings: Settings, url: str) -> None:
    backend = backend_put(name="Counted", kind="openai", base_url=url, api_key="")
    row, _ = deployment_put(
        backend=backend,
        upstream_model=settings.EMBEDDING_MODEL,
        purpose=Deployment.Purpose.EMBEDDING.value,
        public_name=settings.EMBEDDING_MODEL,
        price_key="embedding/counted",
    )
    price_set(price_key=row.price_key, rates=EMBEDDING_PRICE, approved_by="tests")


def limited(team: Team, limit: str) -> None:
    budget_set(scope="team", unit="money", limit=Decimal(limit), period="month", team_id=team.id)


def test_a_budget_used_up_in_the_middle_is_told_and_what_was_bought_is_kept(
    user: User, settings: Settings, originals_dir: Path
) -> None:
    bootstrap_defaults()
    team = team_make(owner=user)
    collection = collection_make(team=team, user=user)
    collection.chunking = {"size": 50, "overlap": 0, "small": 0}
    collection.save()
    text = "\n\n".join(
        f"Paragraph {number}. " + f"Valve {number} opens at noon. " * 5 for number in range(110)
    )
    row, _ = services.document_create(
        collection=collection, name="long.txt", content=text.encode(), created_by=collection.created_by
    )
    with CountingProxy(0.0).running() as proxy:
        served(settings, proxy.url)
        # Room for one batch that is under way, and for less than all of them.
        limited(team, "0.00004")
        assert services.document_ingest(row.pk) == "failed"
        row.refresh_from_db()
        assert (row.error_step, row.error_code) == ("embedding", "budget_exhausted")
        bought = sum(proxy.counts().values())
        assert bought == EmbeddingDraft.objects.filter(document=row).count() > 0
        assert not Chunk.objects.exists()

        limited(team, "1")
        services.document_retry(document=row)
        assert services.document_ingest(row.pk) == "ready"
        row.refresh_from_db()
        assert set(proxy.counts().values()) == {1}
        assert len(proxy.counts()) == row.chunk_count > bought

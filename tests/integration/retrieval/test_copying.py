"""Rows written in COPY's binary form are the rows that were meant."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from retrieval import services
from retrieval.copying import Field, halves, integer, integers, rows_copy, sparse
from retrieval.models import TERMS, ChunkWords, Collection, EmbeddingDraft
from retrieval.spaces import space_current
from tests.integration.retrieval.conftest import PERSON, TEAM

pytestmark = pytest.mark.django_db
WORDS = ("chunk_id", "collection_id", "document_id", "configuration", "length", "terms", "weights")
COLUMNS = ("id", "created_at", "team_id", "document_id", "space_id", "content_hash", "embedding")


def test_what_is_copied_is_read_back_and_never_twice(collection: Collection) -> None:
    document, _ = services.document_create(
        collection=collection, name="a.txt", content=b"words", created_by=PERSON
    )
    space = space_current()
    matrix = np.array([[1.0, -0.5, 65504.0, 0.0001], [0.0, -0.0, 0.333, 1e-9]], dtype=np.float32)
    moments = [
        datetime(2026, 3, 29, 1, 59, 59, 999_999, UTC),
        datetime(1999, 12, 31, tzinfo=UTC) - timedelta(microseconds=1),
    ]
    rows: list[tuple[Field, ...]] = [
        (uuid7(), moment, TEAM, document.pk, space.pk, bytes([number]) * 32, vector)
        for number, (moment, vector) in enumerate(zip(moments, halves(matrix), strict=True))
    ]
    rows_copy("retrieval_embeddingdraft", COLUMNS, rows)
    found = list(EmbeddingDraft.objects.order_by("content_hash"))
    for row, draft, vector in zip(rows, found, matrix.astype(np.float16), strict=True):
        kept = (draft.pk, draft.created_at, draft.team_id, draft.document_id, draft.space_id)
        assert kept == row[:5]
        assert bytes(draft.content_hash) == row[5]
        assert np.array(draft.embedding, dtype=np.float16).tolist() == vector.tolist()
    with pytest.raises(IntegrityError), transaction.atomic():
        rows_copy("retrieval_embeddingdraft", COLUMNS, [(uuid7(), *rows[0][1:])])


@pytest.mark.parametrize("weights", [{}, {1: 0.5}, {7: 1.25, 400: 2.0, TERMS: 0.1}])
def test_words_and_sparse_vectors_are_copied_as_they_are(db: None, weights: dict[int, float]) -> None:
    row: tuple[Field, ...] = (
        uuid7(),
        uuid7(),
        uuid7(),
        "größe",
        integer(2**31 - 1),
        integers(list(weights)),
        sparse(weights, TERMS),
    )
    rows_copy("retrieval_chunkwords", WORDS, [row])
    found = ChunkWords.objects.get()
    assert (found.chunk_id, found.configuration, found.length) == (row[0], row[3], 2**31 - 1)
    assert found.terms == list(weights)
    # Read back counted from 0.
    kept = dict(zip(found.weights.indices(), found.weights.values(), strict=True))
    assert {place + 1: value for place, value in kept.items()} == pytest.approx(weights)

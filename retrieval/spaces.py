"""Embedding spaces: which model's vectors are stored and searched."""

from django.conf import settings
from django.db import connection, transaction

from retrieval.errors import EmbeddingMismatch
from retrieval.models import Chunk, EmbeddingSpace
from retrieval.selectors import space_active


def space_searched() -> EmbeddingSpace | None:
    """The space a question is compared in, None before the first document. Errors: EmbeddingMismatch."""
    active = space_active()
    if active is not None and not _is_configured(active):
        raise _mismatch(active)
    return active


def space_current() -> EmbeddingSpace:
    """The space of the configured model, made on first use with its index.

    Errors: EmbeddingMismatch when documents are embedded with another model than the configured one.
    """
    active = space_active()
    if active is not None and _is_configured(active):
        return active
    with transaction.atomic(), connection.cursor() as cursor:
        # One at a time: two workers that start together must not make two spaces.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('retrieval.space', 0))")
        active = space_active()
        if active is not None and not _is_configured(active):
            if Chunk.objects.filter(space=active).exists():
                raise _mismatch(active)
            EmbeddingSpace.objects.filter(pk=active.pk).update(state=EmbeddingSpace.State.RETIRED)
            active = None
        if active is None:
            active, _ = EmbeddingSpace.objects.update_or_create(
                model=settings.EMBEDDING_MODEL,
                dimension=settings.EMBEDDING_DIMENSION,
                generation=1,
                defaults={
                    "state": EmbeddingSpace.State.ACTIVE,
                    "query_prefix": settings.EMBEDDING_QUERY_PREFIX,
                    "passage_prefix": settings.EMBEDDING_PASSAGE_PREFIX,
                },
            )
            cursor.execute("SELECT retrieval_space_index(%s, %s)", [active.pk, active.dimension])
    return active


def _is_configured(space: EmbeddingSpace) -> bool:
    return (space.model, space.dimension) == (settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSION)


def _mismatch(space: EmbeddingSpace) -> EmbeddingMismatch:
    return EmbeddingMismatch(
        f"Documents are embedded with {space.model} ({space.dimension} numbers), but {settings.EMBEDDING_MODEL} "
        f"({settings.EMBEDDING_DIMENSION}) is configured: their vectors cannot be compared. Set EMBEDDING_MODEL and "
        "EMBEDDING_DIMENSION back, or remove and upload the documents again."
    )

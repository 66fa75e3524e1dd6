"""Embedding spaces: which model's vectors are stored and searched.

One space is active: every search reads it and every new version is embedded in it. The settings name the model of the
first one only; another model is built beside it and takes over in one transaction (`retrieval.rebuild`).
"""

from collections.abc import Callable

from django.conf import settings
from django.db import connection, transaction

from retrieval.models import ChunkVector, EmbeddingSpace
from retrieval.selectors import space_active

_FOLDED = 100
"""Vectors entered into the index in one transaction: about half a second, in which a removal of theirs waits."""
_LOCK = "hashtextextended('retrieval.space', 0)"


def space_current() -> EmbeddingSpace:
    """The space that new versions are embedded in: the active one, made on first use with its index.

    While nothing is stored the settings decide, so a model that is changed before the first document just counts.
    """
    active = space_active()
    if active is not None and _stands(active):
        return active
    with transaction.atomic():
        # One at a time: two workers that start together must not make two spaces.
        spaces_lock(alone=True)
        active = space_active()
        if active is not None and _stands(active):
            return active
        EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).update(
            state=EmbeddingSpace.State.RETIRED
        )
        return space_ensure(
            model=settings.EMBEDDING_MODEL,
            dimension=settings.EMBEDDING_DIMENSION,
            query_prefix=settings.EMBEDDING_QUERY_PREFIX,
            passage_prefix=settings.EMBEDDING_PASSAGE_PREFIX,
            state=EmbeddingSpace.State.ACTIVE,
        )


def spaces_lock(*, alone: bool) -> None:
    """Until the end of the transaction the active space stays the one it is; `alone` for whoever changes it."""
    function = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}({_LOCK})")


def space_ensure(
    *, model: str, dimension: int, query_prefix: str, passage_prefix: str, state: str
) -> EmbeddingSpace:
    """The space of this model in this state, with its index; inside a transaction that holds the lock."""
    space, _ = EmbeddingSpace.objects.update_or_create(
        model=model,
        dimension=dimension,
        generation=1,
        defaults={"state": state, "query_prefix": query_prefix, "passage_prefix": passage_prefix},
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT retrieval_space_index(%s, %s)", [space.pk, space.dimension])
    return space


def vectors_fold(*, go_on: Callable[[], bool] = lambda: True) -> int:
    """Enter what was stored lately into the approximate index, a little at a time, until none is left or `go_on()` says
    no. Returns how many."""
    entered = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT retrieval_vectors_fold(%s)", [_FOLDED])
            now = int(cursor.fetchone()[0])
        entered += now
        if now < _FOLDED or not go_on():
            return entered


def _stands(space: EmbeddingSpace) -> bool:
    """Whether the active space stays: it is the configured one, or something is stored in it."""
    configured = (space.model, space.dimension) == (settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSION)
    return configured or ChunkVector.objects.filter(space=space).exists()

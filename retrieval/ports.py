"""What the web tier hands down by setting: the embedder, the limits, the keys, and the way to the database."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from retrieval.models import Document, EmbeddingSpace
from retrieval.types import Embedded, Embedder, Reranker, Role


class RunDb(Protocol):
    """Awaits `fn(*args)` run in a thread that may use the database."""

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


@cache
def _load(path: str) -> object:
    return import_string(path)


def embedder() -> Embedder:
    """The embedder named by RETRIEVAL_EMBEDDER. Errors: ImportError when there is none of this name."""
    return cast("Embedder", _load(settings.RETRIEVAL_EMBEDDER))


def reranker() -> Reranker | None:
    """The reranker named by RETRIEVAL_RERANKER; None when the setting is empty or it has no server.

    Only where the database may be used.
    """
    path = settings.RETRIEVAL_RERANKER
    found = cast("Reranker", _load(path)) if path else None
    return found if found is not None and found.ready() else None


def password_seal(password: str) -> str:
    """Ciphertext, by the function named by RETRIEVAL_SEAL; empty stays empty."""
    return cast("Callable[[str], str]", _load(settings.RETRIEVAL_SEAL))(password)


def password_open(sealed: str) -> str | None:
    """What `password_seal` was given, by the function named by RETRIEVAL_UNSEAL; None for nothing."""
    return cast("Callable[[str], str]", _load(settings.RETRIEVAL_UNSEAL))(sealed) or None


def fetched_admit(document: Document, size: int) -> None:
    """Let a fetched file of this size be kept, or raise why not, by the function named by RETRIEVAL_ADMIT."""
    cast("Callable[[Document, int], None]", _load(settings.RETRIEVAL_ADMIT))(document, size)


def run_db() -> RunDb:
    """The door named by RETRIEVAL_RUN_DB. Errors: ImportError when there is none of this name."""
    return cast("RunDb", _load(settings.RETRIEVAL_RUN_DB))


async def embed(texts: Sequence[str], *, space: EmbeddingSpace, role: Role, payer: object) -> Embedded:
    """Vectors of `texts` in a space: by its model, behind the prefix it was trained with. Errors: the embedder's."""
    prefix = space.query_prefix if role == "query" else space.passage_prefix
    return await embedder()([prefix + text for text in texts], role=role, payer=payer, model=space.model)

"""From a question to passages, with the viewer's rights inside the statement that searches."""

from collections.abc import Sequence
from uuid import UUID

from retrieval.types import Passage, Viewer


async def search(
    *, query: str, viewer: Viewer, collection_ids: Sequence[UUID] | None, limit: int, payer: object
) -> list[Passage]:
    """The best passages, best first; empty when nothing is similar enough to be worth showing.

    `collection_ids`: None searches everything readable, an empty sequence nothing.
    Errors: NotFound naming an unknown or unreadable collection, EmbeddingUnavailable.
    """
    raise LookupError(query, viewer, collection_ids, limit, payer)

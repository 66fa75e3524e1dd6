"""Texts in batches that an embedder takes at once. Pure."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

BATCH_TEXTS = 32
BATCH_TOKENS = 8192


class Counted(Protocol):
    """Something to embed, with its length."""

    @property
    def tokens(self) -> int: ...


Item = TypeVar("Item", bound=Counted)


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in their order, at most BATCH_TEXTS and BATCH_TOKENS at a time; a longer text goes alone."""
    batch: list[Item] = []
    tokens = 0
    for item in items:
        if batch and (len(batch) == BATCH_TEXTS or tokens + item.tokens > BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(item)
        tokens += item.tokens
    if batch:
        yield batch

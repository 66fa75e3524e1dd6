"""One ranking from two legs. Pure."""

from collections.abc import Hashable, Mapping
from math import sqrt
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

VECTOR_WEIGHT = 0.65
"""Share of the vector leg in the mix; the rest is the keyword leg's."""
WORDS_POWER = 0.7
"""BM25 to this power: one rare word more says less the more there are already. Chosen with the weight on one
half of the questions of many collections and measured on the other: see docs/retrieval-quality.md."""


def fused(vector: Mapping[Key, float], keyword: Mapping[Key, float]) -> list[tuple[Key, float]]:
    """(key, score) of every key of `vector`, best first: a convex mix of the two scores, each normalised.

    Both score the same candidates: `vector` by cosine, `keyword` by BM25, 0 where it is missing. Each is put on the
    scale of its own mean and standard deviation among the candidates; BM25 first by a power below one.
    """
    keys = list(vector)
    near = _standardised([vector[key] for key in keys])
    words = _standardised([max(0.0, keyword.get(key, 0.0)) ** WORDS_POWER for key in keys])
    mixed = [VECTOR_WEIGHT * a + (1 - VECTOR_WEIGHT) * b for a, b in zip(near, words, strict=True)]
    # Ties by key, so that the same question always gets the same order.
    return sorted(zip(keys, mixed, strict=True), key=lambda item: (-item[1], str(item[0])))


def _standardised(values: list[float]) -> list[float]:
    if not values:
        return []
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / spread if spread > 1e-9 else 0.0 for value in values]

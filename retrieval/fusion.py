"""One ranking from two legs. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from math import exp, sqrt
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

VECTOR_WEIGHT = 0.65
"""Share of the vector leg in the mix; the rest is the keyword leg's."""
WORDS_POWER = 0.7
"""BM25 to this power: one rare word more says less the more there are already. Chosen with the weight on one
half of the questions of many collections and measured on the other: see docs/retrieval-quality.md."""
TRUSTED = 0.4
"""Share of the question's words, by weight, that the best text by words must say for that leg to count in full."""
FOLLOWED = 5
"""First hits that a second look follows: what is near to them is likely right too."""
FOLLOW = 0.5
"""Weight of the nearness to them beside the question's own."""
_STEEP = 0.25
"""Deviations of the mix by which one of them counts a factor e less than the first."""


def trust(keyword: Mapping[Key, float], most: float) -> float:
    """How far the words found are to be believed, 0 to 1: a question in another language than the texts meets few of
    them, and those by chance. `most`: what all of its words weigh."""
    return min(1.0, max(keyword.values(), default=0.0) / (TRUSTED * most)) if most > 0 else 0.0


def leading(order: Sequence[tuple[Key, float]]) -> dict[Key, float]:
    """Weights, 1 together, of the first hits by how sure each is beside the very first."""
    first = order[:FOLLOWED]
    sure = [exp((score - first[0][1]) / _STEEP) for _, score in first]
    return {key: share / sum(sure) for (key, _), share in zip(first, sure, strict=True)}


def fused(
    vector: Mapping[Key, float], keyword: Mapping[Key, float], *, trusted: float = 1.0
) -> list[tuple[Key, float]]:
    """(key, score) of every key of `vector`, best first: a convex mix of the two scores, each normalised.

    Both score the same candidates: `vector` by cosine, `keyword` by BM25, 0 where it is missing. Each is put on the
    scale of its own mean and standard deviation among the candidates; BM25 first by a power below one. `trusted`:
    how far the keyword leg counts, see `trust`.
    """
    keys = list(vector)
    near = _standardised([vector[key] for key in keys])
    words = _standardised([max(0.0, keyword.get(key, 0.0)) ** WORDS_POWER for key in keys])
    share = (1 - VECTOR_WEIGHT) * trusted
    mixed = [VECTOR_WEIGHT * a + share * b for a, b in zip(near, words, strict=True)]
    # Ties by key, so that the same question always gets the same order.
    return sorted(zip(keys, mixed, strict=True), key=lambda item: (-item[1], str(item[0])))


def _standardised(values: list[float]) -> list[float]:
    if not values:
        return []
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / spread if spread > 1e-9 else 0.0 for value in values]

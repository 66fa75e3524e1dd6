"""What a model's own tokenizer makes of a text, learned from what its server said of earlier prompts. Pure.

Our count alone is off by a factor that hangs on the text: a model that splits every digit, or was made for another
script, differs most where there are digits or that script. So a few facts of a text that cost next to nothing beside
its tokens (digits, spaces, marks, characters of each family of scripts) are weighed together. The weights are fitted to
the last calls, drawn towards "the same as ours" while calls are few, and an odd call cannot bend them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple

import numpy as np

MESSAGE_OVERHEAD = 4
"""Tokens a chat template adds around a message, as a rule; what is right for one model is off for another."""
REPLY_OVERHEAD = 3
LEAST = 20
"""Fewer pairs teach nothing."""
PLAIN_PCT, OTHER_PCT = 15.0, 60.0
"""Bands without pairs: of text that is nearly all ASCII, and of other scripts, where models differ most."""
_PLAIN_SHARE = 0.02
_LARGEST_PCT = 90.0
_FOLDS, _ROUNDS = 5, 5


class Facts(NamedTuple):
    """What is known of a prompt, or of a piece of one. Pieces add up with `joined`."""

    tokens: int = 0
    """By our own tokenizer."""
    messages: int = 0
    prompts: int = 0
    """1 for a whole prompt."""
    digits: int = 0
    capitals: int = 0
    marks: int = 0
    spaces: int = 0
    latin: int = 0
    """From here on characters beyond ASCII, by family of scripts; first letters with accents."""
    cyrillic: int = 0
    """With Greek."""
    arabic: int = 0
    """With Hebrew."""
    indic: int = 0
    """With Thai and the scripts of its neighbours."""
    symbols: int = 0
    """Typographic marks, arrows, currencies."""
    cjk: int = 0
    """Chinese and Japanese."""
    hangul: int = 0
    other: int = 0
    """Emoji and what is rare."""


PRIOR = (1.0, float(MESSAGE_OVERHEAD), float(REPLY_OVERHEAD), *(0.0,) * 12)
"""Tokens for each of `Facts`, before anything is learned."""
_STRENGTH = (0.02, 0.0002, 0.0002, *(0.01,) * 12)
"""How firmly the prior is held, in pairs of the size of a fact's share of a prompt."""
_SELDOM = (*(1e-15,) * 7, *(1e-3,) * 8)
"""And how firmly whatever the size: one prompt with three letters of another script says nothing about that script."""


_KINDS: tuple[Iterable[int], ...] = (
    b"0123456789",
    range(65, 91),
    b".,;:!?()[]{}<>\"'/\\-_=*#%&+|@~^$`",
    b" ",
    range(0xC2, 0xCC),
    range(0xCC, 0xD5),
    range(0xD5, 0xE0),
    range(0xE0, 0xE2),
    (0xE2,),
    range(0xE3, 0xEA),
    range(0xEA, 0xEE),
    range(0xEE, 0xF5),
)
"""The bytes by which each kind of character is known: beyond ASCII its first one."""
_OF_KIND = np.zeros((len(_KINDS), 256), dtype=np.int64)
for _at, _bytes in enumerate(_KINDS):
    _OF_KIND[_at, list(_bytes)] = 1
_SLICE = 1 << 20
"""Bytes looked at together: each takes eight while they are counted."""
_BEYOND_ASCII = Facts._fields.index("latin")


def facts_of(text: str, tokens: int) -> Facts:
    """The facts of a piece of text that has `tokens` by our tokenizer; linear, some twenty times cheaper than it."""
    data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    counts = np.bincount(data[:_SLICE], minlength=256)
    for at in range(_SLICE, len(data), _SLICE):
        counts += np.bincount(data[at : at + _SLICE], minlength=256)
    return Facts(tokens, 0, 0, *(_OF_KIND @ counts).tolist())


def joined(pieces: Iterable[Facts]) -> Facts:
    """The facts of pieces that stand one after the other."""
    return Facts(*map(sum, zip(*pieces, strict=True)))


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one model and one counter; without pairs, what is safe to assume."""

    weights: tuple[float, ...] = PRIOR
    plain_pct: float = PLAIN_PCT
    """The server says more than this above `expected` in one of twenty prompts only, of nearly plain ASCII."""
    other_pct: float = OTHER_PCT
    """The same of all others."""
    n: int = 0
    """Pairs learned from."""

    def expected(self, facts: Facts) -> int:
        """What the server is likely to say."""
        return max(0, round(_dot(self.weights, facts)))

    def of_message(self, facts: Facts) -> float:
        """The part of `expected` that one message with this text takes, its marks included; not rounded."""
        return _dot(self.weights, facts) + self.weights[1]

    def error_pct(self, facts: Facts) -> float:
        """The band above the expected number, in percent of it."""
        return self.plain_pct if is_plain(facts) else self.other_pct

    def as_json(self) -> dict[str, Any]:
        """Fit for a row."""
        return {
            "weights": list(self.weights),
            "plain_pct": self.plain_pct,
            "other_pct": self.other_pct,
            "n": self.n,
        }


UNLEARNED = Learned()


def learned_read(row: Mapping[str, Any]) -> Learned:
    """Back from `as_json`; what does not fit this version's facts was not learned."""
    weights = tuple(row.get("weights", ()))
    if len(weights) != len(PRIOR):
        return UNLEARNED
    return Learned(weights, row["plain_pct"], row["other_pct"], row["n"])


def is_plain(facts: Facts) -> bool:
    """Whether nearly all of it is ASCII."""
    return sum(facts[_BEYOND_ASCII:]) <= _PLAIN_SHARE * 4 * max(1, facts.tokens)


def learned_from(pairs: Sequence[tuple[Facts, int]]) -> Learned:
    """What pairs of (facts, the server's figure) teach. The band is measured on pairs that the fit had not seen."""
    sound = [(facts, told) for facts, told in pairs if facts.tokens > 0 and told > 0]
    if len(sound) < LEAST:
        return UNLEARNED
    missed = [
        (is_plain(facts), (told / max(1.0, _dot(weights, facts)) - 1) * 100)
        for fold in range(_FOLDS)
        for weights in (_fitted([pair for at, pair in enumerate(sound) if at % _FOLDS != fold]),)
        for facts, told in sound[fold::_FOLDS]
    ]
    return Learned(
        weights=_fitted(sound),
        plain_pct=_band([pct for plain, pct in missed if plain], PLAIN_PCT),
        other_pct=_band([pct for plain, pct in missed if not plain], OTHER_PCT),
        n=len(sound),
    )


def _band(missed: list[float], unknown: float) -> float:
    """The 95th percentile of what was missed upward, or downward where that is more."""
    if len(missed) < LEAST:
        return unknown
    ranked = sorted(abs(pct) for pct in missed)
    return round(min(_LARGEST_PCT, ranked[math.ceil(0.95 * len(ranked)) - 1]), 2)


def _fitted(pairs: Sequence[tuple[Facts, int]]) -> tuple[float, ...]:
    """Weights by least squares of the relative error; what lies far off counts less in each round.

    Relative to our own count: a figure that is far too small would else weigh most.
    """
    ours = [max(1.0, _dot(PRIOR, facts)) for facts, _ in pairs]
    rows = [[value / own for value in facts] for own, (facts, _) in zip(ours, pairs, strict=True)]
    ratios = [told / own for own, (_, told) in zip(ours, pairs, strict=True)]
    sizes = [math.sqrt(sum(row[i] ** 2 for row in rows) / len(rows)) for i in range(len(PRIOR))]
    trust = [1.0] * len(rows)
    weights = list(PRIOR)
    for _ in range(_ROUNDS):
        weights = _solved(rows, ratios, trust, sizes)
        misses = [abs(ratio - _dot(weights, row)) for row, ratio in zip(rows, ratios, strict=True)]
        usual = max(0.002, 2 * _median(misses))
        trust = [1.0 if miss <= usual else usual / miss for miss in misses]
    return tuple(weights)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _solved(
    rows: Sequence[Sequence[float]], ratios: Sequence[float], trust: Sequence[float], sizes: Sequence[float]
) -> list[float]:
    """Ridge regression towards PRIOR: the normal equations, by elimination with pivots."""
    k = len(PRIOR)
    left = [[0.0] * (k + 1) for _ in range(k)]
    for row, ratio, weight in zip(rows, ratios, trust, strict=True):
        short = ratio - _dot(PRIOR, row)
        for i in range(k):
            part = weight * row[i]
            for j in range(k):
                left[i][j] += part * row[j]
            left[i][k] += part * short
    for i in range(k):
        left[i][i] += _STRENGTH[i] * sizes[i] ** 2 + _SELDOM[i]
    for i in range(k):
        pivot = max(range(i, k), key=lambda r: abs(left[r][i]))
        left[i], left[pivot] = left[pivot], left[i]
        for r in range(i + 1, k):
            factor = left[r][i] / left[i][i]
            left[r] = [a - factor * b for a, b in zip(left[r], left[i], strict=True)]
    step = [0.0] * k
    for i in reversed(range(k)):
        done = sum(left[i][j] * step[j] for j in range(i + 1, k))
        step[i] = (left[i][k] - done) / left[i][i]
    return [prior + change for prior, change in zip(PRIOR, step, strict=True)]


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    return sum(map(mul, one, other), 0.0)

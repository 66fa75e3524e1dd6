"""Which passage a sentence of an answer repeats where the model put no mark, by shared words alone. Pure.

A match says that a passage uses the same words, not that it was what the model drew on, and not that it proves the
sentence; so it is shown apart from what the model cited. It would rather say nothing than something wrong: a sentence
with a number that the passage does not have, a short one, and one whose words are spread over the passage match none.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.sentences import sentences_of
from retrieval.words import words_of

SHARE = 0.62
"""How much of the sentence's words and word pairs, by weight, two neighbouring sentences of the passage must hold."""
LEAST_TERMS = 5
"""Different words (or pairs of characters) from which a sentence says enough to be recognised."""
MOST_SENTENCES = 80
"""Of an answer that are looked at."""
MOST_WINDOWS = 3000
"""Of the passages: a file that went along whole may be long."""
_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+|(?<=[。！？])|\n+")
_MARK = re.compile(r"[\[【]\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*[\]】]")
_CODE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_LAYOUT = re.compile(r"^[\s>#*+•-]+|^\s*\d+[.)]\s+")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence of an answer, and the passage that has its words."""

    text: str
    number: int
    """The passage's place, from 1."""
    score: float
    """Share of the sentence that the passage holds, SHARE to 1."""


class _Windows:
    """Pairs of neighbouring sentences of all passages, since an answer often joins two, by the terms in them."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.numbers: list[int] = []
        self.digits: list[frozenset[str]] = []
        self.holding: dict[str, list[int]] = {}
        for number, text in enumerate(passages, 1):
            sentences = _terms_by_sentence(text)
            for place, terms in enumerate(sentences[: MOST_WINDOWS - len(self.numbers)]):
                self._add(number, terms.union(*sentences[place + 1 : place + 2]))

    def _add(self, number: int, terms: frozenset[str]) -> None:
        for term in terms:
            self.holding.setdefault(term, []).append(len(self.numbers))
        self.numbers.append(number)
        self.digits.append(frozenset(digit for term in terms for digit in _NUMBER.findall(term)))

    def best(self, terms: frozenset[str], digits: frozenset[str]) -> tuple[int, float]:
        """(passage, share of the terms by weight) of the window that holds most and all of the digits; 0: none."""
        # A word that no passage has weighs as much as one that a single window has.
        weight = {term: math.log(1 + len(self.numbers) / len(self.holding.get(term, "1"))) for term in terms}
        shares: dict[int, float] = {}
        for term in terms:
            for window in self.holding.get(term, ()):
                shares[window] = shares.get(window, 0.0) + weight[term]
        fitting = [(share, -window) for window, share in shares.items() if digits <= self.digits[window]]
        share, window = max(fitting, default=(0.0, 0))
        return (self.numbers[-window], share / sum(weight.values())) if share else (0, 0.0)


def matches(answer: str, passages: Sequence[str]) -> tuple[Match, ...]:
    """The unmarked sentences of `answer` that one of `passages` says in nearly the same words, in their order."""
    windows = _Windows(passages)
    found: list[Match] = []
    for text in _unmarked(answer):
        terms = _terms(text)
        if sum(" " not in term for term in terms) < LEAST_TERMS:
            continue
        number, score = windows.best(terms, frozenset(_NUMBER.findall(text)))
        if score >= SHARE:
            found.append(Match(text, number, round(min(1.0, score), 3)))
    return tuple(found)


def _unmarked(answer: str) -> Iterator[str]:
    """Sentences without a mark, as they are read: no list signs, no emphasis. A mark behind the full stop counts."""
    pieces = [piece.strip() for piece in _END.split(_CODE.sub("\n", answer))]
    for place, piece in enumerate(pieces[:MOST_SENTENCES]):
        after = pieces[place + 1] if place + 1 < len(pieces) else ""
        if _MARK.search(piece) or _MARK.match(after):
            continue
        text = _LAYOUT.sub("", piece).replace("**", "").replace("__", "").strip()
        # A question asks; a line that ends in a colon announces.
        if text and not text.endswith(("?", "？", "؟", ":", "：")):
            yield text


def _terms_by_sentence(text: str) -> list[frozenset[str]]:
    return [terms for piece in sentences_of(text) if (terms := _terms(piece))]


def _terms(text: str) -> frozenset[str]:
    """Words and pairs of neighbouring words; of scripts without blanks pairs of characters, and neighbours of these."""
    words = words_of(text.casefold())
    spaced, pairs = words.spaced.split(), words.pairs.split()
    return frozenset(
        [
            *spaced,
            *pairs,
            *(f"{one} {other}" for one, other in pairwise(spaced)),
            *(f"{one} {other}" for one, other in pairwise(pairs)),
        ]
    )

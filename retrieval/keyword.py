"""The keyword leg: BM25 over the words of the chunks the viewer may read.

The text's side of the formula is stored with each chunk; the question's side is its words with their idf in what is
in reach. The score is their inner product, exact for every candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from uuid import UUID

from django.db import connection

from retrieval.keyword_index import UNSTEMMED
from retrieval.language import CONFIGURATIONS, language_of
from retrieval.models import TERMS
from retrieval.scope import IN_READABLE, READABLE, Reach, Scope
from retrieval.words import words_of

SCAN_UP_TO = 20_000
"""Chunks in reach up to which every one is scored: about 2 µs each."""
CANDIDATES = 20_000
"""Stored chunks that the words of a question are expected to bring up for scoring."""
_ALONE = 0.5
"""Share of them for words that bring up every chunk they are in; the rest holds two of the words."""
_TOGETHER = 12
"""Words that are looked for beside others: a question may be as long as a page."""
_ENOUGH = 1_000
"""Where fewer are expected, all that hold the rarest of the other words are looked at."""
_MOST = 60_000
"""Where words stand together more often than expected: chunks that are scored at most."""
_FEW = 100_000
"""Chunks in reach up to which finding them by their collection and then by their words is the cheaper way."""
_LONGEST = 8_000
"""Characters of a question that are looked at."""

_COUNTED = """
    SELECT chunks AS n FROM retrieval_wordcount w WHERE w.term = {term} AND w.collection_id = ANY({readable})
    UNION ALL
    SELECT difference FROM retrieval_worddelta w WHERE w.term = {term} AND w.collection_id = ANY({readable})
"""
# A word that the question's own language passes over (the, of, and) is none in any other configuration either. An
# untold language is taken for the one that most of what is in reach has.
_WORDS = """
WITH held AS MATERIALIZED (
    SELECT name, sum(n)::bigint AS chunks FROM unnest(%(names)s::text[]) AS name, LATERAL ({of_name}) AS counted
    GROUP BY name HAVING sum(n) > 0
), own AS MATERIALIZED (
    SELECT coalesce(nullif(%(own)s, ''), (SELECT name FROM held ORDER BY chunks DESC, name LIMIT 1))::regconfig AS name
), asked AS (
    SELECT word, count(*) AS times FROM own, unnest(string_to_array(%(spaced)s, ' ')) AS word
    WHERE word <> '' AND to_tsvector(own.name, word) <> ''::tsvector GROUP BY word
), read AS (
    SELECT DISTINCT asked.word, asked.times, found.term
    FROM asked, held, LATERAL retrieval_terms(held.name::regconfig, asked.word, '') AS found
    UNION ALL
    SELECT pair, count(*), retrieval_term(pair) FROM unnest(string_to_array(%(pairs)s, ' ')) AS pair GROUP BY pair
), term AS (
    SELECT term, sum(times) AS times, array_agg(word) AS words FROM read GROUP BY term
)
SELECT term.term, term.words, term.times::float, coalesce(sum(counted.n), 0)::bigint, total.chunks
FROM (SELECT sum(chunks)::bigint AS chunks FROM held) AS total, term LEFT JOIN LATERAL ({of_term}) AS counted ON true
GROUP BY term.term, term.words, term.times, total.chunks
"""
_SCAN = """
SELECT chunk_id, -(weights <#> %(question)s::sparsevec) AS score FROM retrieval_chunkwords
WHERE collection_id = ANY({readable}){narrowed} AND weights <#> %(question)s::sparsevec < 0
ORDER BY score DESC, chunk_id LIMIT %(limit)s
"""
_BROUGHT = """
SELECT chunk_id, -(weights <#> %(question)s::sparsevec) AS score FROM (
    SELECT chunk_id, weights FROM retrieval_chunkwords WHERE ({holding}) AND {within}{narrowed} LIMIT %(most)s
) AS candidate
ORDER BY score DESC, chunk_id LIMIT %(limit)s
"""
_THESE = """
SELECT chunk_id, -(weights <#> %(question)s::sparsevec) FROM retrieval_chunkwords
WHERE chunk_id = ANY(%(chunks)s::uuid[])
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the keyword leg knows it: how much each of its words tells, rarest first."""

    idf: Mapping[int, float]
    """By term, times how often the question says it; words that nothing in reach holds are left out."""
    found_in: Mapping[int, int]
    """Chunks in reach that hold the term."""
    unknown: float = 0.0
    """What the words that nothing in reach holds would weigh."""
    unknown_pairs: float = 0.0
    """What the pairs of characters among them would weigh."""

    @property
    def vector(self) -> str:
        """pgvector's text form."""
        return "{" + ",".join(f"{t}:{self.idf[t]:.6g}" for t in sorted(self.idf)) + f"}}/{TERMS}"

    @property
    def most(self) -> float:
        """The sum of all weights, words unknown here included: a text that says every word once, at mean length."""
        return sum(self.idf.values()) + self.unknown

    @property
    def said(self) -> float:
        """The same without unknown pairs of characters: most of those stand across two words and are none."""
        return self.most - self.unknown_pairs


def question_of(text: str, scope: Scope) -> Question:
    """Weigh the words of a question by what is in reach, read in every language that is."""
    text = text[:_LONGEST]
    words = words_of(text)
    names = [*dict.fromkeys(CONFIGURATIONS.values()), UNSTEMMED]
    parameters = {
        **scope.parameters(),
        "spaced": words.spaced,
        "pairs": words.pairs,
        "names": names,
        "own": CONFIGURATIONS.get(language_of(text), ""),
    }
    of_name = _COUNTED.format(term="-retrieval_term(name)", readable=READABLE)
    of_term = _COUNTED.format(term="term.term", readable=READABLE)
    with connection.cursor() as cursor:
        cursor.execute(_WORDS.format(of_name=of_name, of_term=of_term), parameters)
        rows = cursor.fetchall()
    total = rows[0][4] if rows else None
    if not total:
        return Question({}, {})
    found = sorted(
        ((int(n), term, times, words) for term, words, times, n, _ in rows if n > 0),
        key=lambda row: row[:2],
    )
    known = {word for _, _, _, words in found for word in words}
    missing = {word for _, words, *_ in rows for word in words} - known
    return Question(
        idf={term: times * _idf(total, chunks) for chunks, term, times, _ in found},
        found_in={term: chunks for chunks, term, _, _ in found},
        unknown=len(missing) * _idf(total, 0),
        unknown_pairs=len(missing & set(words.pairs.split())) * _idf(total, 0),
    )


def _idf(total: int, chunks: int) -> float:
    return log(1 + (max(0, total - chunks) + 0.5) / (chunks + 0.5))


def matching(question: Question, scope: Scope, within: Reach, *, limit: int) -> list[tuple[UUID, float]]:
    """(chunk id, BM25) of the best, best first. Exact over what is in reach when that is little, else over the chunks
    that hold a rare word of the question or two of the others."""
    if not question.idf:
        return []
    parameters = {**scope.parameters(), "question": question.vector, "limit": limit}
    if within.chunks <= SCAN_UP_TO:
        sql = _SCAN.format(readable=READABLE, narrowed=scope.narrowed)
    else:
        holding, terms = _holding(question, within)
        parameters |= {**terms, "most": _MOST}
        reading = f"collection_id = ANY({READABLE})" if within.chunks <= _FEW else IN_READABLE
        sql = _BROUGHT.format(holding=holding, within=reading, narrowed=scope.narrowed)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(chunk, float(score)) for chunk, score in cursor.fetchall()]


def _holding(question: Question, within: Reach) -> tuple[str, dict[str, list[int]]]:
    """SQL that finds the candidates by their words, and its values."""
    alone, together = _candidates(question, within)
    arms, values = [], {}
    if alone:
        arms.append("terms && %(alone)s::integer[]")
        values["alone"] = alone
    for n, (term, beside) in enumerate(together):
        arms.append(f"terms @> %(word_{n})s::integer[] AND terms && %(beside_{n})s::integer[]")
        values |= {f"word_{n}": [term], f"beside_{n}": beside}
    return " OR ".join(f"({arm})" for arm in arms), values


def _candidates(question: Question, within: Reach) -> tuple[list[int], list[tuple[int, list[int]]]]:
    """Words whose every chunk is scored, and words whose chunks are scored where one of the words named with it stands
    too; as many of both as bring up no more than CANDIDATES stored chunks if words stood anywhere by chance.

    A chunk with a single word that is not rare is left out: it is never among the best of a question of several.
    """
    stored = max(1, within.stored)
    share = max(1.0, stored / max(1, within.chunks))
    alone: list[int] = []
    together: list[tuple[int, list[int]]] = []
    common: list[int] = []
    brought = seen = 0.0
    for term, chunks in question.found_in.items():
        holding = chunks * share
        if not common and brought + holding <= _ALONE * CANDIDATES:
            alone.append(term)
            brought += holding
            continue
        if common:
            expected = holding * min(1.0, seen / stored)
            if brought + expected > CANDIDATES or len(together) == _TOGETHER:
                break
            brought += expected
            together.append((term, common.copy()))
        common.append(term)
        seen += holding
    if common and brought < _ENOUGH and (not alone or question.found_in[common[0]] * share <= CANDIDATES):
        alone.append(common[0])
        together = [(term, rest) for term, (_, *rest) in together if rest]
    return alone, together


def scores(question: Question, chunks: Sequence[UUID]) -> dict[UUID, float]:
    """BM25 of these chunks; none of the words: 0. The caller got the ids under the viewer's rights."""
    if not question.idf or not chunks:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_THESE, {"question": question.vector, "chunks": list(chunks)})
        return {chunk: float(score) for chunk, score in cursor.fetchall()}

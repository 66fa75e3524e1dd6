"""The keyword leg: BM25 over the words of the chunks the viewer may read.

The text's side of the formula is stored with each chunk; the question's side is its words with their idf in what is
in reach. The score is their inner product, exact for every candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from uuid import UUID

from django.db import connection, transaction

from retrieval.keyword_index import UNSTEMMED
from retrieval.language import CONFIGURATIONS, language_of
from retrieval.scope import READABLE, Reach, Scope
from retrieval.word_models import TERMS
from retrieval.words import words_of

SCAN_UP_TO = 20_000
"""Chunks in reach up to which every one is scored: about 2 µs each."""
CANDIDATES = 30_000
"""Stored chunks that the rarest words of a question may bring up for scoring."""
_LONGEST = 8_000
"""Characters of a question that are looked at."""

_CONFIGURATIONS = """
SELECT name, sum(n) FROM unnest(%(names)s::text[]) AS name,
    LATERAL (SELECT chunks AS n FROM retrieval_wordcount
             WHERE term = -retrieval_term(name) AND collection_id = ANY({readable})
             UNION ALL SELECT difference FROM retrieval_worddelta
             WHERE term = -retrieval_term(name) AND collection_id = ANY({readable})) AS counted
GROUP BY name HAVING sum(n) > 0 ORDER BY sum(n) DESC, name
"""
# A word that the question's own language passes over (the, of, and) is none in any other configuration either.
_WORDS = """
WITH asked AS (
    SELECT word, count(*) AS times FROM unnest(string_to_array(%(spaced)s, ' ')) AS word
    WHERE word <> '' AND (%(own)s = '' OR to_tsvector(%(own)s::regconfig, word) <> ''::tsvector) GROUP BY word
), read AS (
    SELECT DISTINCT asked.word, asked.times, found.term
    FROM asked, unnest(%(configurations)s::text[]) AS configuration,
        LATERAL retrieval_terms(configuration::regconfig, asked.word, '') AS found
    UNION ALL
    SELECT pair, count(*), retrieval_term(pair) FROM unnest(string_to_array(%(pairs)s, ' ')) AS pair GROUP BY pair
), term AS (
    SELECT term, sum(times) AS times, array_agg(word) AS words FROM read GROUP BY term
)
SELECT term.term, term.words, term.times::float, coalesce(sum(counted.n), 0)::bigint FROM term
LEFT JOIN LATERAL (
    SELECT chunks AS n FROM retrieval_wordcount w WHERE w.term = term.term AND w.collection_id = ANY({readable})
    UNION ALL
    SELECT difference FROM retrieval_worddelta w WHERE w.term = term.term AND w.collection_id = ANY({readable})
) AS counted ON true
GROUP BY term.term, term.words, term.times
"""
_SCAN = """
SELECT chunk_id, -(weights <#> %(question)s::sparsevec) AS score FROM retrieval_chunkwords
WHERE collection_id = ANY({readable}){narrowed} AND weights <#> %(question)s::sparsevec < 0
ORDER BY score DESC, chunk_id LIMIT %(limit)s
"""
_RAREST = """
SELECT chunk_id, -(weights <#> %(question)s::sparsevec) AS score FROM (
    SELECT chunk_id, weights FROM retrieval_chunkwords
    WHERE terms && %(rarest)s::integer[] AND collection_id = ANY({readable}){narrowed} LIMIT %(most)s
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

    @property
    def vector(self) -> str:
        """pgvector's text form."""
        return "{" + ",".join(f"{t}:{self.idf[t]:.6g}" for t in sorted(self.idf)) + f"}}/{TERMS}"

    @property
    def most(self) -> float:
        """The sum of all weights, words unknown here included: a text that says every word once, at mean length."""
        return sum(self.idf.values()) + self.unknown


def question_of(text: str, scope: Scope) -> Question:
    """Weigh the words of a question by what is in reach, read in every language that is."""
    text = text[:_LONGEST]
    words = words_of(text)
    names = [*dict.fromkeys(CONFIGURATIONS.values()), UNSTEMMED]
    with connection.cursor() as cursor:
        cursor.execute(_CONFIGURATIONS.format(readable=READABLE), {**scope.parameters(), "names": names})
        held = dict(cursor.fetchall())
        if not held:
            return Question({}, {})
        own = CONFIGURATIONS.get(language_of(text), "")
        parameters = {
            **scope.parameters(),
            "spaced": words.spaced,
            "pairs": words.pairs,
            "configurations": list(held),
            # An untold language is taken for the one that most of what is in reach has.
            "own": own or next(iter(held)),
        }
        cursor.execute(_WORDS.format(readable=READABLE), parameters)
        rows = cursor.fetchall()
    total = int(sum(held.values()))
    found = sorted(
        ((int(n), term, times, words) for term, words, times, n in rows if n > 0), key=lambda row: row[:2]
    )
    known = {word for _, _, _, words in found for word in words}
    missing = {word for _, words, _, _ in rows for word in words} - known
    return Question(
        idf={term: times * _idf(total, chunks) for chunks, term, times, _ in found},
        found_in={term: chunks for chunks, term, _, _ in found},
        unknown=len(missing) * _idf(total, 0),
    )


def _idf(total: int, chunks: int) -> float:
    return log(1 + (max(0, total - chunks) + 0.5) / (chunks + 0.5))


def matching(question: Question, scope: Scope, within: Reach, *, limit: int) -> list[tuple[UUID, float]]:
    """(chunk id, BM25) of the best, best first. Exact over what is in reach when that is little, else over the chunks
    that hold the rarest words."""
    if not question.idf:
        return []
    parameters = {**scope.parameters(), "question": question.vector, "limit": limit}
    sql = _SCAN
    if within.chunks > SCAN_UP_TO:
        sql = _RAREST
        parameters |= {"rarest": _rarest(question, within), "most": CANDIDATES * 2}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.format(readable=READABLE, narrowed=scope.narrowed), parameters)
        return [(chunk, float(score)) for chunk, score in cursor.fetchall()]


def _rarest(question: Question, within: Reach) -> list[int]:
    """The rarest words, as many as bring up no more than CANDIDATES stored chunks; at least one."""
    share = max(1.0, within.stored / max(1, within.chunks))
    chosen: list[int] = []
    brought = 0.0
    for term, chunks in question.found_in.items():
        brought += chunks * share
        if chosen and brought > CANDIDATES:
            break
        chosen.append(term)
    return chosen


def scores(question: Question, chunks: Sequence[UUID]) -> dict[UUID, float]:
    """BM25 of these chunks; none of the words: 0. The caller got the ids under the viewer's rights."""
    if not question.idf or not chunks:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_THESE, {"question": question.vector, "chunks": list(chunks)})
        return {chunk: float(score) for chunk, score in cursor.fetchall()}

"""Writing the keyword leg: the words of a document's chunks, and the counts that idf is made of."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from uuid import UUID

from django.db import connection, transaction

from retrieval.copying import integer, integers, rows_copy, sparse
from retrieval.language import CONFIGURATIONS, language_of
from retrieval.models import TERMS, Document
from retrieval.words import Words, words_of

UNSTEMMED = "simple"
_K1, _B = 1.2, 0.75
"""BM25's own: how soon a word said again says nothing new, and how much a long text is discounted."""
_ROWS = 500
_SAMPLED = 12
"""Chunks from which a document's language is told."""

_CHUNKS = """
SELECT id, heading, text FROM retrieval_chunk c WHERE document_id = %s
AND NOT EXISTS (SELECT FROM retrieval_chunkwords w WHERE w.chunk_id = c.id) ORDER BY index
"""
# A document says few words often: each is reduced to its stem once, whoever counts how often it is said.
_STEMS = """
SELECT word, term, times
FROM unnest(%(words)s::text[]) AS word, LATERAL retrieval_terms(%(configuration)s::regconfig, word, '')
UNION ALL SELECT pair, retrieval_term(pair), 1 FROM unnest(%(pairs)s::text[]) AS pair
"""
_STORED = """
SELECT coalesce(sum(n) FILTER (WHERE term = 0), 0)::bigint, coalesce(sum(n) FILTER (WHERE term = -1), 0)::bigint FROM (
    SELECT term, chunks AS n FROM retrieval_wordcount WHERE term IN (0, -1) AND collection_id = %(collection)s
    UNION ALL
    SELECT term, difference FROM retrieval_worddelta WHERE term IN (0, -1) AND collection_id = %(collection)s
) AS total
"""
_COLUMNS = ("chunk_id", "collection_id", "document_id", "configuration", "length", "terms", "weights")
_SUPPOSED = (50, 50 * 70)
"""Before its first chunks a collection has no mean length: 70 words, counted as fifty chunks, is what many collections
come near to. The mean of the day is kept; weighing old chunks again gains nothing that can be measured."""


def document_words_write(document_id: UUID, collection_id: UUID) -> str:
    """Index the words of a document's stored chunks; in the transaction that stores them. Returns its language.

    The database itself removes the words of a chunk that is removed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS, [document_id])
        rows = cursor.fetchall()
        cursor.execute(_STORED, {"collection": collection_id})
        stored, words = cursor.fetchone()
    language = language_of("\n".join(text for _, _, text in rows[:_SAMPLED]))
    configuration = CONFIGURATIONS.get(language, UNSTEMMED)
    chunks, length = stored + _SUPPOSED[0], words + _SUPPOSED[1]
    stems: dict[str, tuple[int, ...]] = {}
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        said = [words_of(f"{heading}\n{text}") for _, heading, text in part]
        _stems_learn(stems, said, configuration)
        counted = [_counted(item, stems) for item in said]
        chunks, length = chunks + len(part), length + sum(map(Counter.total, counted))
        rows_copy(
            "retrieval_chunkwords",
            _COLUMNS,
            (
                (row[0], collection_id, document_id, configuration, *_weighed(terms, length / chunks))
                for row, terms in zip(part, counted, strict=True)
            ),
        )
    return language


def _stems_learn(stems: dict[str, tuple[int, ...]], said: Sequence[Words], configuration: str) -> None:
    """Add what is not among `stems` yet: the terms of each word; none for one that the language passes over."""
    words = {word for item in said for word in item.spaced.split()} - stems.keys()
    pairs = {pair for item in said for pair in item.pairs.split()} - stems.keys()
    if not words and not pairs:
        return
    stems |= dict.fromkeys(words | pairs, ())
    with connection.cursor() as cursor:
        cursor.execute(_STEMS, {"words": list(words), "pairs": list(pairs), "configuration": configuration})
        for word, term, times in cursor.fetchall():
            stems[word] += (term,) * times


def _counted(said: Words, stems: Mapping[str, tuple[int, ...]]) -> Counter[int]:
    """How often each term is said, in their order."""
    words = (*said.spaced.split(), *said.pairs.split())
    found = Counter(chain.from_iterable(map(stems.__getitem__, words)))
    return Counter(dict(sorted(found.items())))


def _weighed(terms: Counter[int], mean: float) -> tuple[bytes, bytes, bytes]:
    """(length, terms, weights): BM25's side of the text, as `retrieval_weights` in `sql/words.sql` has it."""
    length = terms.total()
    bend = _K1 * (1 - _B + _B * length / mean)
    weights = {term: times * (_K1 + 1) / (times + bend) for term, times in terms.items()}
    return integer(length), integers(list(terms)), sparse(weights, TERMS)


def words_fold() -> int:
    """Join the counts of what was written and removed lately. Returns how many differences there were."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT retrieval_words_fold()")
        return int(cursor.fetchone()[0])


def documents_unindexed() -> Iterator[tuple[UUID, UUID]]:
    """(document, collection) of documents with chunks whose words are not indexed, as of a time before words were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT c.document_id, c.collection_id FROM retrieval_chunk c"
            " WHERE NOT EXISTS (SELECT FROM retrieval_chunkwords w WHERE w.chunk_id = c.id)"
        )
        yield from cursor.fetchall()


def words_backfill() -> int:
    """Index the words of every document that has none yet; documents stay searchable meanwhile. Returns how many."""
    done = 0
    for document_id, collection_id in documents_unindexed():
        with transaction.atomic():
            row = Document.objects.select_for_update().filter(pk=document_id).first()
            if row is not None:
                row.language = document_words_write(document_id, collection_id)
                row.save(update_fields=["language", "updated_at"])
                done += 1
    words_fold()
    return done

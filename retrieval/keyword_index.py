"""Writing the keyword leg: the words of a document's chunks, and the counts that idf is made of."""

from collections.abc import Iterator
from uuid import UUID

from django.db import connection, transaction

from retrieval.language import CONFIGURATIONS, language_of
from retrieval.models import Document
from retrieval.words import words_of

UNSTEMMED = "simple"
_ROWS = 500
_SAMPLED = 12
"""Chunks from which a document's language is told."""

_CHUNKS = "SELECT id, heading, text FROM retrieval_chunk WHERE document_id = %s ORDER BY index"
# Before its first chunks a collection has no mean length: 70 words, counted as fifty chunks, is what many
# collections come near to. The mean of the day is kept; weighing old chunks again gains nothing that can be measured.
_WRITE = """
WITH given AS MATERIALIZED (
    SELECT g.id, array_agg(t.term) AS terms, array_agg(t.times) AS times, sum(t.times)::integer AS length
    FROM unnest(%(ids)s::uuid[], %(spaced)s::text[], %(pairs)s::text[]) AS g(id, spaced, pairs)
    LEFT JOIN LATERAL retrieval_terms(%(configuration)s::regconfig, g.spaced, g.pairs) AS t ON true
    GROUP BY g.id
), stored AS (
    SELECT coalesce(sum(n) FILTER (WHERE term = 0), 0) AS chunks, coalesce(sum(n) FILTER (WHERE term = -1), 0) AS words
    FROM (
        SELECT term, chunks AS n FROM retrieval_wordcount
        WHERE term IN (0, -1) AND collection_id = %(collection)s
        UNION ALL
        SELECT term, difference FROM retrieval_worddelta
        WHERE term IN (0, -1) AND collection_id = %(collection)s
    ) AS total
), mean AS (
    SELECT (50 * 70.0 + stored.words + coalesce(sum(given.length), 0)) / (50 + stored.chunks + count(*)) AS length
    FROM stored, given GROUP BY stored.words, stored.chunks
)
INSERT INTO retrieval_chunkwords (chunk_id, collection_id, document_id, configuration, length, terms, weights)
SELECT given.id, %(collection)s, %(document)s, %(configuration)s, coalesce(given.length, 0),
    array_remove(given.terms, NULL),
    retrieval_weights(array_remove(given.terms, NULL), array_remove(given.times, NULL),
        coalesce(given.length, 0), mean.length::double precision)
FROM given, mean
ON CONFLICT (chunk_id) DO NOTHING
"""


def document_words_write(document_id: UUID, collection_id: UUID) -> str:
    """Index the words of a document's stored chunks; in the transaction that stores them. Returns its language.

    The database itself removes the words of a chunk that is removed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS, [document_id])
        rows = cursor.fetchall()
        language = language_of("\n".join(text for _, _, text in rows[:_SAMPLED]))
        configuration = CONFIGURATIONS.get(language, UNSTEMMED)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            words = [words_of(f"{heading}\n{text}") for _, heading, text in part]
            cursor.execute(
                _WRITE,
                {
                    "ids": [row[0] for row in part],
                    "spaced": [item.spaced for item in words],
                    "pairs": [item.pairs for item in words],
                    "configuration": configuration,
                    "collection": collection_id,
                    "document": document_id,
                },
            )
    return language


def words_fold() -> int:
    """Join the counts of what was written and removed lately. Returns how many differences there were."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT retrieval_words_fold()")
        return int(cursor.fetchone()[0])


def documents_unindexed() -> Iterator[tuple[UUID, UUID]]:
    """(document, collection) of documents with chunks whose words are not indexed: stored before there was this leg."""
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

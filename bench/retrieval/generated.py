"""A large installation made inside the database: collections, chunks, clustered vectors, words by Zipf's law."""

import time
from collections.abc import Callable
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from retrieval.models import Collection, Document, EmbeddingSpace, Grant

PER_COLLECTION, PER_DOCUMENT = 1000, 10
DIMENSION = 384
VOCABULARY, WORDS = 50_000, 80
FEW, HALF = "user:00000000-0000-0000-0000-000000000001", "user:00000000-0000-0000-0000-000000000050"
"""Principals who may read 1 % and 50 % of the collections."""
_BATCH = 20_000

# Words are letters only, their rank log-uniform, which is Zipf's law; a word is the same wherever it occurs.
WORD = f"translate(floor(exp(random() * ln({VOCABULARY}::float)))::int::text, '0123456789', 'bdfgklmnpr')"
_CHUNKS = f"""
INSERT INTO retrieval_chunk (id, created_at, team_id, collection_id, document_id, version, index, page, start, "end",
    text, heading, tokens, content_hash)
SELECT gen_random_uuid(), now(), d.team_id, d.collection_id, d.id, 1, i, NULL, i * 1000, i * 1000 + 900,
    (SELECT string_agg({WORD}, ' ') FROM generate_series(1, {WORDS}) AS w WHERE w > 0 AND i >= 0 AND d.id IS NOT NULL),
    '', 100, decode(md5(random()::text), 'hex')
FROM retrieval_document d, generate_series(0, {PER_DOCUMENT - 1}) AS i WHERE d.collection_id = ANY(%s)
"""
_VECTORS = """
INSERT INTO retrieval_chunkvector (chunk_id, space_id, team_id, collection_id, document_id, embedding, indexed)
SELECT c.id, %(space)s, c.team_id, c.collection_id, c.document_id, l2_normalize(m.v + a.v + b.v), true
FROM (SELECT *, floor(random() * 2000)::int AS m, floor(random() * 1000)::int AS a, floor(random() * 1000)::int AS b
      FROM retrieval_chunk WHERE collection_id = ANY(%(collections)s)) AS c
JOIN bench_part m ON m.n = c.m JOIN bench_part a ON a.n = 2000 + c.a JOIN bench_part b ON b.n = 3000 + c.b
"""
_WORDS = """
INSERT INTO retrieval_chunkwords (chunk_id, collection_id, document_id, configuration, length, terms, weights)
SELECT c.id, c.collection_id, c.document_id, 'english', t.length, t.terms,
    retrieval_weights(t.terms, t.times, t.length, %(mean)s)
FROM retrieval_chunk c, LATERAL (
    SELECT array_agg(term) AS terms, array_agg(times) AS times, sum(times)::int AS length
    FROM retrieval_terms('english', c.text, '')) AS t
WHERE c.collection_id = ANY(%(collections)s)
"""
# Centres of two thousand subjects, and what strays around them: a third of the length.
_PARTS = f"""
CREATE TABLE IF NOT EXISTS bench_part AS SELECT n, (SELECT array_agg(
    (sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) * CASE WHEN n < 2000 THEN 1 ELSE 0.45 END + 0 * i)::real)
    FROM generate_series(1, {DIMENSION}) AS i WHERE n >= 0)::halfvec({DIMENSION}) AS v
FROM generate_series(0, 3999) AS n
"""


def build(connection: psycopg.Connection, chunks: int, say: Callable[[str], None]) -> UUID:
    """Fill an empty, migrated database. Returns the embedding space."""
    began = time.perf_counter()
    connection.execute("SET maintenance_work_mem = '2GB'; SET max_parallel_maintenance_workers = 2")
    connection.execute("SET synchronous_commit = off; DROP INDEX IF EXISTS words_terms")
    space = EmbeddingSpace.objects.create(model="bench", dimension=DIMENSION, state="active").pk
    connection.execute(_PARTS)
    collections = _collections(chunks // PER_COLLECTION)
    step = _BATCH // PER_COLLECTION
    for start in range(0, len(collections), step):
        part = collections[start : start + step]
        connection.execute(_CHUNKS, [part])
        connection.execute(_VECTORS, {"space": space, "collections": part})
        connection.execute(_WORDS, {"mean": float(WORDS), "collections": part})
        connection.execute("SELECT retrieval_words_fold()")
        if start % (step * 10) == 0:
            say(f"{(start + len(part)) * PER_COLLECTION} chunks after {time.perf_counter() - began:.0f} s")
    for name, statement in (
        ("vector index", f"SELECT retrieval_space_index('{space}', {DIMENSION})"),
        ("word index", "CREATE INDEX words_terms ON retrieval_chunkwords USING gin (terms)"),
        ("statistics", "VACUUM ANALYZE"),
    ):
        at = time.perf_counter()
        connection.execute(statement)
        say(f"{name}: {time.perf_counter() - at:.0f} s")
    return space


def _collections(count: int) -> list[UUID]:
    rows = [
        Collection(team_id=uuid7(), name=f"bench {n}", created_by="bench", chunk_count=PER_COLLECTION)
        for n in range(count)
    ]
    Collection.objects.bulk_create(rows)
    Grant.objects.bulk_create(
        Grant(team_id=row.team_id, collection=row, principal=principal, verb="read", created_by="bench")
        for principal, share in ((FEW, 0.01), (HALF, 0.5))
        for row in rows[: max(1, int(count * share))]
    )
    Document.objects.bulk_create(
        (
            Document(
                team_id=row.team_id,
                collection=row,
                name=f"document {n}",
                sha256=f"{row.pk.hex}{n:032x}",
                size=0,
                serving_version=1,
                created_by="bench",
                status="ready",
                chunk_count=PER_DOCUMENT,
                language="en",
            )
            for row in rows
            for n in range(PER_COLLECTION // PER_DOCUMENT)
        ),
        batch_size=5000,
    )
    return [row.pk for row in rows]

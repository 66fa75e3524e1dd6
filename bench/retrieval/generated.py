"""A large installation made inside the database: collections, chunks, clustered vectors, words by Zipf's law."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
FROM retrieval_document d, generate_series(0, {PER_DOCUMENT - 1}) AS i WHERE d.collection_id = ANY(%(collections)s)
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
# As the trigger and the fold would have it in the end, without the differences on the way.
_COUNTS = """
INSERT INTO retrieval_wordcount (collection_id, term, chunks)
SELECT collection_id, term, count(*) FROM retrieval_chunkwords, unnest(terms) AS term
WHERE collection_id = ANY(%(collections)s) GROUP BY collection_id, term
UNION ALL
SELECT collection_id, total.term, total.n FROM (
    SELECT collection_id, count(*) AS chunks, sum(length) AS words FROM retrieval_chunkwords
    WHERE collection_id = ANY(%(collections)s) GROUP BY collection_id
) AS c, LATERAL (VALUES (0, c.chunks), (-1, c.words), (-retrieval_term('english'), c.chunks)) AS total(term, n)
"""
# Indexes and triggers that cost more row by row than at once.
_BEFORE = """
DROP INDEX IF EXISTS words_terms;
ALTER TABLE retrieval_wordcount DROP CONSTRAINT retrieval_wordcount_pkey;
ALTER TABLE retrieval_chunkwords DISABLE TRIGGER words_added
"""
_AFTER = """
ALTER TABLE retrieval_chunkwords ENABLE TRIGGER words_added;
ALTER TABLE retrieval_wordcount ADD CONSTRAINT retrieval_wordcount_pkey PRIMARY KEY (term, collection_id)
    INCLUDE (chunks)
"""
# Centres of two thousand subjects, and what strays around them: a third of the length.
_PARTS = f"""
CREATE TABLE IF NOT EXISTS bench_part AS SELECT n, (SELECT array_agg(
    (sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) * CASE WHEN n < 2000 THEN 1 ELSE 0.45 END + 0 * i)::real)
    FROM generate_series(1, {DIMENSION}) AS i WHERE n >= 0)::halfvec({DIMENSION}) AS v
FROM generate_series(0, 3999) AS n
"""


def build(address: str, chunks: int, say: Callable[[str], None]) -> UUID:
    """Fill an empty, migrated database, by as many connections as there are cores. Returns the embedding space."""
    with psycopg.connect(address, autocommit=True) as connection:
        return _built(connection, address, chunks, say)


def _built(connection: psycopg.Connection, address: str, chunks: int, say: Callable[[str], None]) -> UUID:
    began = time.perf_counter()
    connection.execute("SET maintenance_work_mem = '3GB'; SET max_parallel_maintenance_workers = 2")
    space = EmbeddingSpace.objects.create(model="bench", dimension=DIMENSION, state="active").pk
    connection.execute(_PARTS)
    connection.execute(_BEFORE)
    collections = _collections(chunks // PER_COLLECTION)
    step = _BATCH // PER_COLLECTION
    parts = [collections[start : start + step] for start in range(0, len(collections), step)]
    with ThreadPoolExecutor(os.cpu_count()) as loaders:
        for done, _ in enumerate(loaders.map(lambda part: _load(address, space, part), parts), 1):
            if done % 10 == 0 or done == len(parts):
                say(f"{min(done * _BATCH, chunks)} chunks after {time.perf_counter() - began:.0f} s")
    for name, statement in (
        ("word counts", _AFTER),
        ("vector index", f"SELECT retrieval_space_index('{space}', {DIMENSION})"),
        ("word index", "CREATE INDEX words_terms ON retrieval_chunkwords USING gin (terms)"),
        ("statistics", "VACUUM ANALYZE"),
    ):
        at = time.perf_counter()
        connection.execute(statement)
        say(f"{name}: {time.perf_counter() - at:.0f} s")
    say(f"built after {time.perf_counter() - began:.0f} s")
    return space


def _load(address: str, space: UUID, collections: Sequence[UUID]) -> None:
    part = {"space": space, "mean": float(WORDS), "collections": list(collections)}
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(_CHUNKS, part)
        # Of rows this fresh the planner knows nothing, and would look for each chunk by itself.
        connection.execute("ANALYZE retrieval_chunk")
        for statement in (_VECTORS, _WORDS, _COUNTS):
            connection.execute(statement, part)


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

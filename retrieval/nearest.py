"""The vector leg: SQL that ranks chunks by similarity among those the viewer may read."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from retrieval.models import EmbeddingSpace
from retrieval.scope import EXACT_UP_TO, IN_READABLE, READABLE, Reach, Scope

# Every plan yields a table of the best (id, score) and one row of how similar anything in reach is: the noise.
# Comparing everything is exact and, for so few, as fast; MATERIALIZED keeps the index out of it, and so does the order
# by a score that is no distance.
_EXACT = """
WITH candidate AS MATERIALIZED ({compared}),
best AS (SELECT id, score FROM candidate ORDER BY score DESC, id LIMIT %(limit)s),
noise AS (SELECT avg(score) AS mean, stddev_samp(score) AS spread FROM candidate)
"""
# Of so many a thousand are enough to tell how similar anything is: as many of each collection, fifty at the least.
_COMPARED = """
WITH best AS (SELECT id, score FROM ({compared}) AS candidate ORDER BY score DESC, id LIMIT %(limit)s),
noise AS (
    SELECT avg(score) AS mean, stddev_samp(score) AS spread FROM (
        SELECT score FROM unnest({readable}) AS held(id), LATERAL (
            SELECT -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
            FROM retrieval_chunkvector WHERE space_id = %(space)s AND collection_id = held.id{narrowed}
            LIMIT (SELECT greatest(50, 1 + 1000 / greatest(1, cardinality({readable}))))
        ) AS sampled LIMIT 1000
    ) AS sample
)
"""
_EACH = """
    SELECT chunk_id AS id, -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
    FROM retrieval_chunkvector WHERE space_id = %(space)s AND collection_id = ANY({readable}){narrowed}
"""
# What the index does not hold yet is compared, every one.
_APPROXIMATE = """
WITH walked AS MATERIALIZED (
    SELECT chunk_id AS id, -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
    FROM retrieval_chunkvector
    WHERE space_id = '{space}' AND indexed AND {in_readable}{narrowed}
    ORDER BY embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension}) LIMIT %(limit)s
), fresh AS MATERIALIZED (
    SELECT chunk_id AS id, -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
    FROM retrieval_chunkvector WHERE space_id = '{space}' AND NOT indexed AND collection_id = ANY({readable}){narrowed}
), best AS (
    SELECT id, score FROM (SELECT * FROM walked UNION ALL SELECT * FROM fresh) AS found
    ORDER BY score DESC, id LIMIT %(limit)s
), noise AS (
    SELECT avg(score) AS mean, stddev_samp(score) AS spread FROM (
        SELECT -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension})) AS score
        FROM retrieval_chunkvector WHERE space_id = %(space)s AND collection_id = ANY({readable}){narrowed} LIMIT 1000
    ) AS sample
)
"""
# The iterative scan may return rows slightly out of order, so the order is made here.
_RANKED = """
SELECT best.id, best.score, noise.mean, noise.spread FROM best CROSS JOIN noise ORDER BY best.score DESC, best.id
"""
_THESE = """
SELECT chunk_id, -(embedding::halfvec({dimension}) <#> %(vector)s::halfvec({dimension}))
FROM retrieval_chunkvector WHERE space_id = %(space)s AND chunk_id = ANY(%(chunks)s::uuid[])
"""
# Added up in one order, so that the same question always gets the same figures.
_BESIDE = """
SELECT c.chunk_id, sum(
    -(c.embedding::halfvec({dimension}) <#> led.embedding::halfvec({dimension})) * led.weight ORDER BY led.id
)
FROM retrieval_chunkvector c, (
    SELECT l.id, v.embedding, l.weight
    FROM unnest(%(leading)s::uuid[], %(weights)s::float[]) AS l(id, weight)
    JOIN retrieval_chunkvector v ON v.chunk_id = l.id AND v.space_id = %(space)s
) AS led
WHERE c.space_id = %(space)s AND c.chunk_id = ANY(%(chunks)s::uuid[]) GROUP BY c.chunk_id
"""
BREADTH = 300
"""Candidates the index walk keeps: 0.98 of what exact search finds among 200,000 clustered chunks; 100 gave 0.90."""
WALK = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %s, true),"
    " set_config('hnsw.max_scan_tuples', '40000', true)"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What the vector leg gives: chunks by similarity, best first, and how similar just anything in reach is."""

    ranked: tuple[tuple[UUID, float], ...] = ()
    mean: float = 0.0
    spread: float = 0.0
    """Standard deviation of the similarities; 0 when there are too few to tell."""


def nearest(scope: Scope, space: EmbeddingSpace, vector: str, *, limit: int, within: Reach) -> Found:
    """The `limit` most similar chunks in reach."""
    exact = within.exact or space.dimension > 4000
    plan = _APPROXIMATE if not exact else _EXACT if within.chunks <= EXACT_UP_TO else _COMPARED
    ranked = filled(plan, space, scope.narrowed)
    parameters = {**scope.parameters(), "vector": vector, "space": space.pk, "limit": limit}
    # Only the walk has settings of its own, which end with a transaction.
    with nullcontext() if exact else transaction.atomic(), connection.cursor() as cursor:
        if not exact:
            cursor.execute(WALK, [str(max(BREADTH, 2 * limit))])
        cursor.execute(ranked + _RANKED, parameters)
        rows = cursor.fetchall()
    if not rows:
        return Found()
    mean, spread = rows[0][2:]
    return Found(tuple((row[0], float(row[1])) for row in rows), mean or 0.0, spread or 0.0)


def filled(plan: str, space: EmbeddingSpace, narrowed: str) -> str:
    """A plan's SQL for this space."""
    known = {"dimension": space.dimension, "readable": READABLE, "narrowed": narrowed}
    return plan.format(**known, compared=_EACH.format(**known), space=space.pk, in_readable=IN_READABLE)


def similarities(space: EmbeddingSpace, vector: str, chunks: Sequence[UUID]) -> dict[UUID, float]:
    """Cosines of these chunks. The caller got their ids under the viewer's rights."""
    if not chunks:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            _THESE.format(dimension=space.dimension),
            {"vector": vector, "space": space.pk, "chunks": list(chunks)},
        )
        return {chunk: float(score) for chunk, score in cursor.fetchall()}


def beside(space: EmbeddingSpace, leading: Mapping[UUID, float], chunks: Sequence[UUID]) -> dict[UUID, float]:
    """How near each of these chunks is to the `leading` ones, by their weights. The caller got the ids under the
    viewer's rights."""
    with connection.cursor() as cursor:
        cursor.execute(
            _BESIDE.format(dimension=space.dimension),
            {
                "leading": list(leading),
                "weights": list(leading.values()),
                "space": space.pk,
                "chunks": list(chunks),
            },
        )
        return {chunk: float(near) for chunk, near in cursor.fetchall()}

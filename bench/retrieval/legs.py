"""What is measured: the product's own functions, beside the bare SQL and the exact answer."""

import asyncio
import random
import time
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from retrieval import keyword as words
from retrieval import nearest as meaning
from retrieval.models import EmbeddingSpace
from retrieval.ranking import DEPTH, rank
from retrieval.scope import READABLE, Reach, Scope, reach, scope_of
from retrieval.selectors import space_active
from retrieval.types import Viewer
from retrieval.vectors import vector_text

Asked = tuple[str, str]
Measured = tuple[list[UUID], list[UUID], float, float]
"""(found, exact, ms, ms of the bare SQL)"""


@dataclass(frozen=True, slots=True)
class Room:
    """Where one viewer searches."""

    scope: Scope
    within: Reach
    space: EmbeddingSpace
    collections: list[UUID]


def room(principal: str) -> Room:
    space = space_active()
    assert space is not None
    scope, within = reach(scope_of(Viewer(frozenset({principal})), None))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {READABLE}", scope.parameters())
        return Room(scope, within, space, cursor.fetchone()[0])


def near(chance: random.Random, part: int) -> str:
    """A question about one of the generated subjects."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT v::text FROM bench_part WHERE n = %s", [part])
        centre = np.array([float(x) for x in cursor.fetchone()[0][1:-1].split(",")])
    stray = np.random.default_rng(chance.randrange(2**32)).standard_normal(len(centre)) * 0.6
    vector = centre + stray
    return vector_text(vector / np.linalg.norm(vector))


def vector(room: Room, text: str, asked: str) -> Measured:
    """The vector leg; bare: its ordered scan alone, with the ids of the collections given."""
    sql = (
        "SELECT chunk_id FROM retrieval_chunkvector WHERE space_id = '{space}' AND indexed AND collection_id = ANY(%s)"
        " ORDER BY embedding::halfvec({dimension}) <#> %s::halfvec({dimension}) LIMIT {limit}"
    )
    known = {"space": room.space.pk, "dimension": room.space.dimension}
    found, took = _timed(
        lambda: meaning.nearest(room.scope, room.space, asked, limit=DEPTH, within=room.within)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(meaning.WALK, [str(max(meaning.BREADTH, 2 * DEPTH))])
        if room.within.exact:
            cursor.execute("SET LOCAL enable_indexscan = off")
        _, bare = _timed(lambda: _ids(cursor, sql.format(**known, limit=DEPTH), [room.collections, asked]))
        cursor.execute("SET LOCAL enable_indexscan = off")
        exact = _ids(cursor, sql.format(**known, limit=10), [room.collections, asked])
    return [chunk for chunk, _ in found.ranked[:10]], exact, took, bare


def keyword(room: Room, text: str, asked: str) -> Measured:
    """The keyword leg with the weighing of the question; bare: its one scoring statement."""

    def search() -> tuple[words.Question, list[tuple[UUID, float]]]:
        question = words.question_of(text, room.scope)
        return question, words.matching(question, room.scope, room.within, limit=DEPTH)

    (question, found), took = _timed(search)
    _, bare = _timed(lambda: words.matching(question, room.scope, room.within, limit=DEPTH))
    few = replace(room.within, chunks=0)
    exact = words.matching(question, room.scope, few, limit=10)
    return [chunk for chunk, _ in found[:10]], [chunk for chunk, _ in exact], took, bare


def hybrid(room: Room, asked: list[Asked]) -> list[float]:
    """Both legs and their fusion, as a search does it; ms a question."""

    async def run() -> list[float]:
        took = []
        for text, vector_of_it in [*asked[:5], *asked]:
            at = time.perf_counter()
            await rank(
                text, scope=room.scope, within=room.within, space=room.space, payer=None, vector=vector_of_it
            )
            took.append((time.perf_counter() - at) * 1000)
        return took[5:]

    return asyncio.run(run())


def _ids(cursor: Any, sql: str, parameters: list[Any]) -> list[UUID]:
    cursor.execute(sql, parameters)
    return [row[0] for row in cursor.fetchall()]


def _timed(fn: Any) -> tuple[Any, float]:
    at = time.perf_counter()
    value = fn()
    return value, (time.perf_counter() - at) * 1000

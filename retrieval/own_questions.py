"""A collection's own questions: a file that says which document, page or phrase should be found for each."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from retrieval.errors import Invalid
from retrieval.evaluation import Run
from retrieval.hits import Hit, hits
from retrieval.models import Collection
from retrieval.ports import reranker, run_db
from retrieval.ranking import rank
from retrieval.scope import scope_of
from retrieval.search import RERANKED, prepare, reranked
from retrieval.types import Reranker, Viewer

TARGET = "target"
_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Expected:
    """A question and where its answer stands."""

    question: str
    document: str
    """Name or id."""
    page: int | None = None
    phrase: str = ""

    def met_by(self, hit: Hit) -> bool:
        """Whether this chunk is what the question should find."""
        named = self.document in {hit.name, str(hit.document_id)}
        paged = self.page is None or hit.page is None or hit.page <= self.page <= (hit.page_end or hit.page)
        return named and paged and _plain(self.phrase) in _plain(hit.text)


def expected_read(path: Path) -> list[Expected]:
    """One line of JSON per question: {question, document, page?, phrase?}. Errors: Invalid naming the line."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            page = row.get("page")
            phrase = str(row.get("phrase") or "")
            found.append(
                Expected(
                    str(row["question"]), str(row["document"]), None if page is None else int(page), phrase
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise Invalid(
                "file", f"Line {number} of {path} is not {{question, document, page?, phrase?}}: {exc}."
            ) from exc
    return found


async def own_runs(
    collection: Collection, questions: Sequence[Expected]
) -> tuple[dict[str, dict[str, int]], dict[str, Run]]:
    """(judgements, what each leg answers), both by the question's place in the file, from 0.

    The first chunk that meets a question counts as its one TARGET. Errors: Invalid when there is nothing to ask or
    search, what the embedder and the reranker raise.
    """
    viewer = Viewer(frozenset({f"team:{collection.team_id}"}))
    space, scope, within = await run_db()(prepare, scope_of(viewer, [collection.pk]))
    if space is None or not questions:
        raise Invalid(
            "collection",
            f"“{collection.name}” holds nothing that could be searched, or no question was given.",
        )
    payer = {"team_id": collection.team_id, "collection_id": collection.id}
    found: dict[str, Run] = {}
    rerank: Reranker | None = await run_db()(reranker)
    for number, item in enumerate(questions):
        ranking = await rank(item.question, scope=scope, within=within, space=space, payer=payer)
        fused = [one.chunk_id for one in ranking.fused]
        orders = {
            "vector": [chunk for chunk, _ in ranking.vector],
            "keyword": [chunk for chunk, _ in ranking.keyword],
            "fused": fused,
        }
        wanted = {chunk: 0.0 for order in orders.values() for chunk in order[:_LOOKED_AT]}
        rows: dict[UUID, Hit] = {hit.chunk_id: hit for hit in await run_db()(hits, scope, wanted)}
        if rerank is not None:
            best = [rows[chunk] for chunk in fused[:RERANKED] if chunk in rows]
            order = await reranked(item.question, best, rerank=rerank, payer=payer)
            orders["reranked"] = [hit.chunk_id for hit in order]
        for leg, chunks in orders.items():
            found.setdefault(leg, {})[str(number)] = _marked(item, chunks[:_LOOKED_AT], rows)
    return {str(number): {TARGET: 1} for number in range(len(questions))}, found


def _marked(item: Expected, order: Iterable[UUID], rows: dict[UUID, Hit]) -> dict[str, float]:
    """The order as falling scores, with TARGET for the first chunk that meets the question."""
    marked: dict[str, float] = {}
    for place, chunk in enumerate(order):
        met = chunk in rows and item.met_by(rows[chunk])
        marked.setdefault(TARGET if met else str(chunk), -float(place))
    return marked


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

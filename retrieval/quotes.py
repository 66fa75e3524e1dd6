"""The best sentences of passages, word for word: an answer of its own when no model may or can give one."""

from collections.abc import Iterator, Sequence

import numpy as np

from retrieval.errors import EmbeddingUnavailable
from retrieval.ports import embed, run_db
from retrieval.selectors import space_active
from retrieval.sentences import sentences_of
from retrieval.types import Passage, Quote
from retrieval.vectors import unit_vectors

MAX_SENTENCES = 64
"""Embedded for one question; taken from the best passages first."""
_LEAST, _MOST = 20, 500
"""Characters: shorter pieces are headings and page numbers, longer ones no sentence."""


async def quote_sentences(
    *, question: str, passages: Sequence[Passage], limit: int, payer: object
) -> list[Quote]:
    """Up to `limit` sentences of the passages most similar to the question, best first.

    `number` is the place of the passage in `passages`, from 1. No model is called, only the embedder.
    Errors: EmbeddingUnavailable, whatever the embedder raises.
    """
    sentences = list(_sentences(passages))[:MAX_SENTENCES]
    if not sentences or limit < 1:
        return []
    space = await run_db()(space_active)
    if space is None:
        raise EmbeddingUnavailable
    asked = await embed([question], space=space, role="query", payer=payer)
    answer = await embed([text for _, text in sentences], space=space, role="passage", payer=payer)
    query = unit_vectors(asked, texts=1, dimension=space.dimension)[0]
    scores = unit_vectors(answer, texts=len(sentences), dimension=space.dimension) @ query
    best = np.argsort(-scores, kind="stable")[:limit]
    return [Quote(text=sentences[i][1], number=sentences[i][0], score=float(scores[i])) for i in best]


def _sentences(passages: Sequence[Passage]) -> Iterator[tuple[int, str]]:
    """(passage number, sentence), each sentence once; line breaks of a page are joined."""
    seen: set[str] = set()
    for number, passage in enumerate(passages, start=1):
        for piece in sentences_of(passage.text):
            text = " ".join(piece.split())
            # A question in a document is close to the one asked and answers nothing.
            if _LEAST <= len(text) <= _MOST and text not in seen and not text.endswith(("?", "？", "؟")):
                seen.add(text)
                yield number, text

"""The reranker that retrieval is given by setting: a reservation for each call, never the reason of a failure."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from app.billing.types import Attempt, Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, highest_level, targets
from app.common.aio import patiently
from app.common.cache import remembered
from app.common.db import run_db
from app.common.errors import AppError, PartFailed
from app.common.models import uuid7
from app.gate import health
from app.gate.admission import Admission, admitted
from app.gate.attempts import embedding_attempt, embedding_cut, embedding_failed
from app.gate.clients import client, lone_client, server_of
from app.gate.embedding import input_tokens, payer_of
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.types import Ranked, RerankRequest
from retrieval.types import Scored

log = logging.getLogger(__name__)

LONGEST_SECONDS = 10.0
"""A reader waits for it: after that the order that was found first has to do."""
NOTICE: Mapping[str, Any] = {
    "code": "not_reranked",
    "message": "The reranker did not answer, so the passages stand in the order in which they were found.",
}


@remembered(5.0)
def _targets() -> list[Target]:
    return targets(Deployment.Purpose.RERANK.value)


class _Reranker:
    """Scores texts by a deployment made for it, where there is one."""

    def ready(self) -> bool:
        """Whether any deployment reranks; in a thread that may use the database."""
        return bool(_targets())

    async def __call__(self, query: str, texts: Sequence[str], *, payer: object, level: str) -> Scored | None:
        """A score for each text, or None, whatever went wrong: the order found first has to do then.

        `payer` as for `embed`; `level` is the highest of the texts, and of a turn its own counts too. None without a
        warning where no deployment is cleared for that: privacy goes before order.
        """
        turn = payer if isinstance(payer, Admission) else None
        level = highest_level(level, turn.plan.level) if turn else level
        target = next((t for t in await run_db(_targets) if t.cleared_for(level)), None)
        if target is None:
            return None
        try:
            if turn is not None:
                answer = await _ranked(target, query, list(texts), turn.plan.payer, turn.plan)
            else:
                # As with embeddings: commands and workers have event loops that live for one call.
                async with lone_client():
                    answer = await _ranked(target, query, list(texts), payer_of(payer), None)
        except AppError as exc:
            log.warning("Not reranked, `%s`: %s", target.public_name, exc.name)
            if turn is not None:
                turn.notices.append(NOTICE)
            return None
        served = answer.served_model or target.upstream_model
        return Scored(scores=answer.scores, model=served, input_tokens=answer.usage.input_tokens)


rerank = _Reranker()


async def _ranked(
    target: Target, query: str, texts: list[str], payer: Payer, turn: CallPlan | None
) -> Ranked:
    """One call under a reservation of its own, of the turn where there is one. Errors: AppError."""
    # The query is read with each text, and the model's own tokenizer is not ours.
    read = [f"{query}\n{text}" for text in texts]
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=payer,
        kind="rerank",
        targets=(target,),
        input_tokens=await input_tokens(target, read) * 3 // 2 + len(texts) * 8,
        turn_id=turn.turn_id if turn else None,
        thread_id=turn.thread_id if turn else None,
        collections=turn.collections if turn else (),
        request_id=turn.request_id if turn else "",
    )
    admission = await reserve(plan)
    try:
        return await _call(target, query, texts, admission)
    finally:
        await patiently(admission.end)


async def _call(target: Target, query: str, texts: list[str], admission: Admission) -> Ranked:
    """The call itself; its attempt is noted however it ends. Errors: PartFailed naming the reranker, Busy."""
    request = RerankRequest(model=target.upstream_model, query=query, documents=tuple(texts))
    read = [f"{query}\n{text}" for text in texts]
    attempt: Attempt | None = None
    async with admitted(target, admission):
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                answer = await client().rerank(server_of(target), request)
            attempt = embedding_attempt(answer, target, read, 1, "rerank")
            health.succeeded(target)
            return answer
        except InferenceError as exc:
            health.failed(target, exc)
            attempt = embedding_failed(target, exc, read, 1, "rerank")
            raise PartFailed("reranker", exc.message) from exc
        except TimeoutError:
            raise PartFailed("reranker", "The reranker took too long.") from None
        finally:
            admission.attempts.append(attempt or embedding_cut(target, read, 1, "rerank"))

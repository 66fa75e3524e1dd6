"""The embedder that retrieval is given by setting: prefixes put, calls reserved and booked."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from app.billing.types import Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, targets
from app.common.aio import patiently
from app.common.db import run_db
from app.common.errors import PartFailed
from app.common.models import uuid7
from app.gate.clients import lone_client
from app.gate.services import Admission, embed_with, reserve
from app.gate.types import CallPlan
from inference_client.fair_queue import Lane
from inference_client.tokens import counter
from inference_client.types import Embeddings
from retrieval.types import Embedded, Role


def embedding_target() -> Target:
    """The deployment that embeds. Errors: PartFailed when none is set up."""
    found = targets(Deployment.Purpose.EMBEDDING.value)
    if not found:
        raise PartFailed(
            "embedder",
            "No embedding server is set up, so documents cannot be searched. An administrator can add one.",
            retry_after=None,
            code="embedder_unavailable",
        )
    return found[0]


async def embed(texts: Sequence[str], *, role: Role, payer: object) -> Embedded:
    """Vectors of `texts`, in order.

    `payer` is the open `Admission` of a turn (its reservation covers the query), or a mapping with `team_id`
    (ingestion: the owner team of the collection pays, by a reservation of its own for each batch).
    Errors: PartFailed naming the embedder; BudgetExhausted.
    """
    prefix = settings.EMBEDDING_QUERY_PREFIX if role == "query" else settings.EMBEDDING_PASSAGE_PREFIX
    prefixed = [prefix + text for text in texts]
    if isinstance(payer, Admission):
        answer = await payer.embed(prefixed, role=role)
    else:
        # Ingestion runs on event loops that live for one document: a shared client would be left open behind them.
        async with lone_client():
            answer = await embed_plain(
                await run_db(embedding_target),
                prefixed,
                payer=_payer(payer),
                lane="interactive" if role == "query" else "background",
            )
    return Embedded(
        vectors=answer.vectors,
        model=answer.served_model or settings.EMBEDDING_MODEL,
        input_tokens=answer.usage.input_tokens,
    )


async def embed_plain(
    target: Target, texts: list[str], *, payer: Payer, request_id: str = "", lane: Lane = "interactive"
) -> Embeddings:
    """Embed texts exactly as they are, under a reservation of their own. Errors: BudgetExhausted, PartFailed, Busy.

    Booking what the call used waits for a database that is away for a while.
    """
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=payer,
        kind="embedding",
        targets=(target,),
        # Half again on top: the embedder's own tokenizer is not ours.
        input_tokens=await input_tokens(target, texts) * 3 // 2 + len(texts) * 4,
        request_id=request_id,
    )
    admission = await reserve(plan)
    try:
        return await embed_with(target, texts, role="passage", admission=admission, lane=lane)
    finally:
        await patiently(admission.end)


async def input_tokens(target: Target, texts: Sequence[str]) -> int:
    """Our own count, taken in a thread: a batch may hold megabytes, and the loop has streams to serve."""
    count = counter(target.tokenizer).count
    return await asyncio.to_thread(lambda: sum(count(text) for text in texts))


def _payer(payer: object) -> Payer:
    if isinstance(payer, Payer):
        return payer
    if isinstance(payer, dict):
        team_id = payer.get("team_id")
        return Payer(team_id=UUID(str(team_id)) if team_id else None)
    raise TypeError(f"An embedding call needs a payer, not {type(payer).__name__}.")

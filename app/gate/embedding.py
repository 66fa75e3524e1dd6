"""The embedder that retrieval is given by setting: prefixes put, calls reserved and booked."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from app.accounts.selectors import team_levels
from app.billing.types import Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, highest_level, targets
from app.catalog.tokenizers import tokenizer
from app.common.aio import patiently
from app.common.db import run_db
from app.common.errors import PartFailed
from app.common.models import uuid7
from app.gate.admission import Admission, embed_with
from app.gate.clients import lone_client
from app.gate.rates import Stand
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.fair_queue import Lane
from inference_client.types import Embeddings
from retrieval.types import Embedded, Role


def embedding_target(model: str | None = None, level: str = "public") -> Target:
    """The deployment that embeds with `model` (None: any) and may see content of that level.

    Errors: PartFailed naming the embedder when there is none.
    """
    return choose(targets(Deployment.Purpose.EMBEDDING.value), model, level)


def choose(found: Sequence[Target], model: str | None, level: str) -> Target:
    """The first of `found` that serves `model` (None: any) and is cleared for `level`. Errors: PartFailed."""
    serving = [t for t in found if model is None or model in {t.public_name, t.upstream_model}]
    cleared = next((t for t in serving if t.cleared_for(level)), None)
    if cleared is not None:
        return cleared
    if serving:
        sentence = (
            f"No embedding server is cleared for {level} content, so these documents cannot be searched."
        )
    elif found:
        sentence = (
            f"No server here serves the embedding model {model}. An administrator can add a deployment of this name "
            "for embeddings, or correct the name. Documents that are embedded with it cannot be searched by another "
            "model: `manage.py embedding_space_build` changes to one that is served."
        )
    else:
        sentence = (
            "No embedding server is set up, so documents cannot be searched. An administrator can add one."
        )
    raise PartFailed("embedder", sentence, retry_after=None, code="embedder_unavailable")


async def embed(texts: Sequence[str], *, role: Role, payer: object, model: str | None = None) -> Embedded:
    """Vectors of `texts`, in order, by `model` (None: whichever embeds here).

    `payer` is the open `Admission` of a turn (its reservation covers the query), or a mapping with `team_id`
    (ingestion: the owner team of the collection pays, by a reservation of its own for each batch) or a whole `payer`,
    the privacy `level` of the texts and, where there is one, the `collection_id`.
    Errors: PartFailed naming the embedder; BudgetExhausted.
    """
    if isinstance(payer, Admission):
        _same_model(payer, model)
        answer = await payer.embed(texts, role=role)
    else:
        # Ingestion runs on event loops that live for one document: a shared client would be left open behind them.
        async with lone_client():
            answer = await embed_plain(
                await run_db(_target_for, payer, model),
                list(texts),
                payer=payer_of(payer),
                collections=_collections(payer),
                lane="interactive" if role == "query" else "background",
            )
    return Embedded(
        vectors=answer.vectors,
        model=answer.served_model or model or "",
        input_tokens=answer.usage.input_tokens,
    )


async def embed_plain(  # noqa: PLR0913 - one keyword for each fact
    target: Target,
    texts: list[str],
    *,
    payer: Payer,
    collections: tuple[UUID, ...] = (),
    request_id: str = "",
    lane: Lane = "interactive",
    counted: Callable[[Sequence[Stand]], None] | None = None,
) -> Embeddings:
    """Embed texts exactly as they are, under a reservation of their own. Errors: BudgetExhausted, PartFailed, Busy.

    `counted` makes rate limits count it and is told how they stand (then also RateLimited). Booking what the call used
    waits for a database that is away for a while.
    """
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=payer,
        kind="embedding",
        targets=(target,),
        # Half again on top: the embedder's own tokenizer is not ours.
        input_tokens=await input_tokens(target, texts) * 3 // 2 + len(texts) * 4,
        rated=counted is not None,
        collections=collections,
        request_id=request_id,
    )
    admission = await reserve(plan, counted=counted)
    try:
        return await embed_with(target, texts, role="passage", admission=admission, lane=lane)
    finally:
        await patiently(admission.end)


async def input_tokens(target: Target, texts: Sequence[str]) -> int:
    """Our own count, taken in a thread: a batch may hold megabytes, and the loop has streams to serve."""
    count = tokenizer(target.tokenizer).count
    return await asyncio.to_thread(lambda: sum(count(text) for text in texts))


def _same_model(admission: Admission, model: str | None) -> None:
    """A turn that was planned just before another model took over. Errors: PartFailed, to be asked again."""
    if admission.plan.embedding is not None and model is not None:
        try:
            choose([admission.plan.embedding], model, "public")
        except PartFailed as exc:
            raise PartFailed(
                "embedder",
                "The embedding model was changed this very moment. Ask again.",
                retry_after=1,
                code="embedder_unavailable",
            ) from exc


def _target_for(payer: object, model: str | None) -> Target:
    """Cleared for the texts, and for whatever is the paying team's: what a private team puts in goes nowhere else."""
    team_id = payer_of(payer).team_id
    return embedding_target(model, highest_level(_level(payer), *team_levels([team_id] if team_id else [])))


def _level(payer: object) -> str:
    return str(payer.get("level", "public")) if isinstance(payer, dict) else "public"


def _collections(payer: object) -> tuple[UUID, ...]:
    found = payer.get("collection_id") if isinstance(payer, dict) else None
    return (UUID(str(found)),) if found else ()


def payer_of(payer: object) -> Payer:
    """Who pays, as `embed` was told. Errors: TypeError."""
    if isinstance(payer, Payer):
        return payer
    if isinstance(payer, dict) and isinstance(payer.get("payer"), Payer):
        return payer_of(payer["payer"])
    if isinstance(payer, dict):
        team_id = payer.get("team_id")
        return Payer(team_id=UUID(str(team_id)) if team_id else None)
    raise TypeError(f"An embedding call needs a payer, not {type(payer).__name__}.")

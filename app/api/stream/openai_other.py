"""`GET /v1/models`, `GET /v1/models/{id}` and `POST /v1/embeddings`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.accounts.selectors import Caller
from app.api.stream.http import Request, Responder, typed
from app.billing.types import Payer
from app.catalog.selectors import Target
from app.chat.asking import embedding_named, models_for
from app.chat.assistants import PREFIX, assistants_of
from app.chat.models import Assistant
from app.common.db import run_db
from app.common.errors import InvalidInput, NotFound
from app.gate.embedding import embed_plain
from app.gate.rates import Stand
from app.gate.rates import headers as rate_headers
from inference_client.tokens import counter


async def models_list(request: Request, respond: Responder, caller: Caller) -> None:
    """The public models this key may use, in OpenAI's list shape; then the assistants."""
    await respond.json(200, {"object": "list", "data": await run_db(_models, caller)})


async def model_get(request: Request, respond: Responder, caller: Caller, name: str) -> None:
    """One of them. Errors: NotFound with OpenAI's code `model_not_found`."""
    for model in await run_db(_models, caller):
        if model["id"] == name:
            await respond.json(200, model)
            return
    raise NotFound(f"There is no model `{name}` that you may use.", code="model_not_found")


def _models(caller: Caller) -> list[dict[str, Any]]:
    targets = models_for(caller)
    windows = {target.public_name: target for target in targets}
    usable = [row for row in assistants_of(caller) if row.model in windows]
    return [*map(_model, targets), *(_assistant(row, windows[row.model]) for row in usable)]


def _assistant(row: Assistant, target: Target) -> dict[str, Any]:
    own = {"id": f"{PREFIX}{row.slug}", "created": int(row.created_at.timestamp()), "owned_by": row.team.name}
    return _model(target) | own


def _model(target: Target) -> dict[str, Any]:
    return {
        "id": target.public_name,
        "object": "model",
        "created": int(target.deployment_id.int >> 80) // 1000,
        "owned_by": target.backend_name,
        "context_window": target.context_window,
        "max_output_tokens": target.max_output_tokens,
    }


async def embeddings(request: Request, respond: Responder, caller: Caller) -> None:
    """Vectors of texts or token arrays, as floats or base64; booked to the key's team like every other call."""
    caller.require_scope("embed")
    body = await request.json()
    model = typed(body, "model", str, "a model's name") or ""
    target = await run_db(embedding_named, caller, model)
    texts = _texts(body.get("input"))
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise InvalidInput("`encoding_format` must be float or base64.", detail={"field": "encoding_format"})
    payer = Payer(
        team_id=caller.default_team_id,
        account_id=caller.account_id,
        user_id=caller.user_id,
        key_id=caller.key_id,
    )

    def counted(stands: Sequence[Stand]) -> None:
        respond.extra |= rate_headers(stands)

    answer = await embed_plain(target, texts, payer=payer, request_id=request.id, counted=counted)
    data = [
        {"object": "embedding", "index": i, "embedding": _vector(v, form)}
        for i, v in enumerate(answer.vectors)
    ]
    await respond.json(
        200, {"object": "list", "model": model, "data": data, "usage": _usage(answer.usage.input_tokens)}
    )


def _usage(tokens: int | None) -> Mapping[str, int | None]:
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _vector(vector: list[float], form: str) -> list[float] | str:
    if form == "float":
        return vector
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def _texts(value: Any) -> list[str]:
    """The inputs as texts. Token arrays are OpenAI's own (cl100k_base) and are turned back into text."""
    match value:
        case str() if value:
            return [value]
        case [*items] if items and all(isinstance(i, str) for i in items):
            return list(items)
        case [*items] if items and all(type(i) is int for i in items):
            return [_decoded(items)]
        case [*items] if items and all(
            isinstance(i, list) and i and all(type(t) is int for t in i) for i in items
        ):
            return [_decoded(i) for i in items]
    raise InvalidInput("`input` must be text, a list of texts, or tokens.", detail={"field": "input"})


def _decoded(tokens: list[int]) -> str:
    try:
        return counter("cl100k_base").decode(tokens)
    except LookupError as exc:
        raise InvalidInput(
            "`input` holds a number that is no cl100k_base token.", detail={"field": "input"}
        ) from exc

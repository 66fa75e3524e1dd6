"""Finds out what a server is and can do. Costs no tokens: no model is called."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeGuard

import orjson

from inference_client.adapters.addresses import api_url, auth_headers, root_url
from inference_client.adapters.failures import failure
from inference_client.adapters.json_tools import items, obj, text_of
from inference_client.adapters.kinds import GENERIC, Kind, kind_of
from inference_client.errors import InferenceError
from inference_client.metrics import metrics_read
from inference_client.transport import Transport
from inference_client.types import ModelFacts, Server, ServerFacts
from inference_client.usage import number

LIMIT_S = 5.0
_MAX_BYTES = 8 * 1024 * 1024
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens")
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "max_tokens")

Answer = tuple[int, bytes]


async def probe(url: str, api_key: str | None = None, *, limit_s: float = LIMIT_S) -> ServerFacts:
    """What answers at `url`; each question may take `limit_s`. Never raises for what a server does."""
    transport = Transport()
    try:
        return await _Probe(
            transport, Server(kind=GENERIC.name, base_url=url, api_key=api_key), limit_s
        ).facts()
    finally:
        await transport.aclose()


class _Probe:
    def __init__(self, transport: Transport, server: Server, limit_s: float) -> None:
        self._transport = transport
        self._server = server
        self._limit_s = limit_s
        self._problem: str | None = None

    async def facts(self) -> ServerFacts:
        models_at = api_url(self._server, GENERIC, "/models")
        roots = ("/health", "/version", "/api/version", "/props", "/info", "/metrics", "/v2")
        asked = (models_at, *(root_url(self._server, path) for path in roots))
        answers = await asyncio.gather(*map(self._ask, asked))
        models, health, version, ollama, props, info, metrics, kserve = answers
        if _is_triton(kserve):
            return await self._triton(kserve)
        if all(answer is None for answer in answers):
            return ServerFacts(
                base_url=self._server.base_url, kind=None, reachable=False, problem=self._problem
            )
        kind = _kind(models, version, ollama, props, info)
        found = _models(models)
        if models is not None and models[0] >= 400 and not found:
            self._problem = failure(models[0], {}, models[1]).message
        return ServerFacts(
            base_url=self._server.base_url,
            kind=kind.name,
            reachable=True,
            healthy=_healthy(health),
            version=_version(version) or _version(ollama) or _version(info),
            models=_with_window(found, props),
            metrics=metrics_read(metrics[1].decode("utf-8", "replace")) if _ok(metrics) else {},
            counts_tokens=kind.counts is not None,
            problem=self._problem,
        )

    async def _triton(self, about: Answer | None) -> ServerFacts:
        """Triton, which tells all of itself below `/v2`, its figures apart: they are on a port of their own."""
        index_at, ready_at = (
            root_url(self._server, f"/v2{path}") for path in ("/repository/index", "/health/ready")
        )
        index, ready = await asyncio.gather(self._ask(index_at, "POST"), self._ask(ready_at))
        names = dict.fromkeys(
            name for row in _list(index) if row.get("state") == "READY" and (name := text_of(row.get("name")))
        )
        return ServerFacts(
            base_url=self._server.base_url,
            kind="triton-vllm",
            reachable=True,
            healthy=None if ready is None else ready[0] == 200,
            version=_version(about),
            models=tuple(ModelFacts(name=name) for name in names),
            problem=self._problem,
        )

    async def _ask(self, url: str, method: str = "GET") -> Answer | None:
        """(status, body), or None where nothing answers."""
        headers = {"accept": "*/*", **auth_headers(self._server, GENERIC)}
        try:
            async with asyncio.timeout(self._limit_s):
                status, _, body = await self._transport.fetch(
                    method, url, headers=headers, connect_s=self._limit_s, max_bytes=_MAX_BYTES
                )
        except TimeoutError:
            self._problem = (
                f"The server did not answer within {self._limit_s:g} s. Check its address and load."
            )
            return None
        except InferenceError as exc:
            self._problem = exc.message
            return None
        return status, body


def _kind(
    models: Answer | None,
    version: Answer | None,
    ollama: Answer | None,
    props: Answer | None,
    info: Answer | None,
) -> Kind:
    """The kind of server, from what only it answers."""
    owners = {text_of(model.get("owned_by")) for model in _rows(models)}
    for owner in ("llamacpp", "vllm"):
        if owner in owners:
            return kind_of(owner)
    if _ok(ollama) and _version(ollama):
        return kind_of("ollama-v1")
    if "default_generation_settings" in _object(props):
        return kind_of("llamacpp")
    if "model_id" in _object(info) and "max_total_tokens" in _object(info):
        return kind_of("tgi-v1")
    return kind_of("vllm") if _ok(version) and _version(version) else GENERIC


def _is_triton(about: Answer | None) -> bool:
    """By an extension only Triton has; the name in its answer can be set."""
    return "schedule_policy" in items(_object(about).get("extensions"))


def _models(answer: Answer | None) -> tuple[ModelFacts, ...]:
    return tuple(
        ModelFacts(
            name=name,
            context_window=_first(row, _WINDOWS) or _first(obj(row.get("meta")), ("n_ctx", "n_ctx_train")),
            max_output_tokens=_first(row, _OUTPUTS),
            owner=text_of(row.get("owned_by")),
        )
        for row in _rows(answer)
        if (name := text_of(row.get("id")) or text_of(row.get("name")))
    )


def _with_window(models: tuple[ModelFacts, ...], props: Answer | None) -> tuple[ModelFacts, ...]:
    """llama.cpp tells the window of one slot beside the model list; that is the one a prompt must fit."""
    settings = _object(props).get("default_generation_settings")
    window = number(obj(settings).get("n_ctx"))
    if window is None:
        return models
    return tuple(
        ModelFacts(
            name=model.name,
            context_window=window,
            max_output_tokens=model.max_output_tokens,
            owner=model.owner,
        )
        for model in models
    )


def _rows(answer: Answer | None) -> list[Mapping[str, Any]]:
    body = _object(answer)
    return [obj(row) for row in items(body.get("data")) or items(body.get("models"))]


def _object(answer: Answer | None) -> Mapping[str, Any]:
    return obj(_json(answer))


def _list(answer: Answer | None) -> list[Mapping[str, Any]]:
    return [obj(row) for row in items(_json(answer))]


def _json(answer: Answer | None) -> object:
    try:
        return orjson.loads(answer[1]) if _ok(answer) else None
    except orjson.JSONDecodeError:
        return None


def _ok(answer: Answer | None) -> TypeGuard[Answer]:
    return answer is not None and answer[0] == 200


def _healthy(answer: Answer | None) -> bool | None:
    """None where there is no health route."""
    if answer is None or answer[0] in (401, 403, 404, 405):
        return None
    return answer[0] == 200


def _version(answer: Answer | None) -> str | None:
    return text_of(_object(answer).get("version"))


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := number(row.get(name)))), None)

"""Finds out what a server is and can do. Costs no tokens: no model is called."""

import asyncio
from dataclasses import replace

from inference_client.adapters.addresses import api_url, auth_headers, root_url
from inference_client.adapters.failures import failure
from inference_client.adapters.kinds import GENERIC, kind_of
from inference_client.errors import BadAuth, InferenceError
from inference_client.metrics import metrics_read
from inference_client.server_facts import (
    Answer,
    Answers,
    healthy,
    is_ok,
    is_triton,
    kind_by,
    models_in,
    triton_models_in,
    version_in,
)
from inference_client.servers import ModelFacts, Server, ServerFacts
from inference_client.transport import Transport

LIMIT_S = 5.0
_MAX_BYTES = 8 * 1024 * 1024
_ROOTS = ("/health", "/version", "/api/version", "/props", "/info", "/metrics", "/v2")
_VERSIONS = ("/version", "/api/version", "/info")
_OF_OLLAMA = ("/api/ps", "/api/tags")


async def probe(url: str, api_key: str | None = None, *, limit_s: float = LIMIT_S) -> ServerFacts:
    """What answers at `url`; each question may take `limit_s`. Never raises for what a server does."""
    transport = Transport()
    try:
        server = Server(kind=GENERIC.name, base_url=url, api_key=api_key)
        return await _Probe(transport, server, limit_s).facts()
    finally:
        await transport.aclose()


async def models_listed(
    server: Server, *, limit_s: float = LIMIT_S
) -> tuple[tuple[ModelFacts, ...], str | None]:
    """(models that a server of a known kind lists, why there are none). Never raises for what a server does."""
    kind = kind_of(server.kind)
    if kind.models_path is None:
        return (), f"{kind.title} has no list of models."
    transport = Transport()
    try:
        async with asyncio.timeout(limit_s):
            status, headers, body = await transport.fetch(
                "GET",
                api_url(server, kind, kind.models_path),
                headers={"anthropic-version": "2023-06-01", **auth_headers(server, kind)},
                connect_s=limit_s,
                max_bytes=_MAX_BYTES,
            )
    except TimeoutError:
        return (), f"The server did not answer within {limit_s:g} s. Check its address and load."
    except InferenceError as exc:
        return (), exc.message
    finally:
        await transport.aclose()
    if status >= 400:
        return (), failure(status, headers, body).message
    found = models_in(kind, {"/models": (status, body)})
    # Gemini's names carry their path.
    return tuple(replace(model, name=model.name.removeprefix("models/")) for model in found), None


class _Probe:
    def __init__(self, transport: Transport, server: Server, limit_s: float) -> None:
        self._transport = transport
        self._server = server
        self._limit_s = limit_s
        self._problem: str | None = None
        self._key_refused = False

    async def facts(self) -> ServerFacts:
        models_at = api_url(self._server, GENERIC, "/models")
        models, roots = await asyncio.gather(self._ask(models_at), self._roots(_ROOTS))
        answers = {"/models": models, **roots}
        if is_triton(answers["/v2"]):
            return await self._triton(answers["/v2"])
        if all(answer is None for answer in answers.values()):
            return ServerFacts(
                base_url=self._server.base_url, kind=None, reachable=False, problem=self._problem
            )
        kind = kind_by(answers)
        if kind is kind_of("ollama-v1"):
            answers |= await self._roots(_OF_OLLAMA)
        found = models_in(kind, answers)
        if models is not None and models[0] >= 400 and not found:
            self._refused(failure(models[0], {}, models[1]))
        metrics = answers["/metrics"]
        versions = (version_in(answers[path]) for path in _VERSIONS)
        return ServerFacts(
            base_url=self._server.base_url,
            kind=kind.name,
            reachable=True,
            healthy=healthy(answers["/health"]),
            version=next(filter(None, versions), None),
            models=found,
            metrics=metrics_read(metrics[1].decode("utf-8", "replace")) if is_ok(metrics) else {},
            counts_tokens=kind.counts is not None,
            key_refused=self._key_refused,
            problem=self._problem,
        )

    async def _triton(self, about: Answer | None) -> ServerFacts:
        """Triton, which tells all of itself below `/v2`, its figures apart: they are on a port of their own."""
        index_at, ready_at = (
            root_url(self._server, f"/v2{path}") for path in ("/repository/index", "/health/ready")
        )
        index, ready = await asyncio.gather(self._ask(index_at, "POST"), self._ask(ready_at))
        return ServerFacts(
            base_url=self._server.base_url,
            kind="triton-vllm",
            reachable=True,
            healthy=None if ready is None else ready[0] == 200,
            version=version_in(about),
            models=triton_models_in(index),
            problem=self._problem,
        )

    async def _roots(self, paths: tuple[str, ...]) -> Answers:
        answers = await asyncio.gather(*(self._ask(root_url(self._server, path)) for path in paths))
        return dict(zip(paths, answers, strict=True))

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

    def _refused(self, error: InferenceError) -> None:
        self._problem = error.message
        self._key_refused = isinstance(error, BadAuth)

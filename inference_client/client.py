"""The client: chat, embeddings and reranking on any kind of inference server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from inference_client.adapters.failures import failure
from inference_client.adapters.kinds import Kind, adapter_for, kind_of
from inference_client.adapters.requests import has_picture
from inference_client.adapters.reranking import ranked, rerank_request
from inference_client.adapters.settled import settled_read, settled_request
from inference_client.chat_call import ChatCall
from inference_client.errors import InferenceError, ModelMissing, TimedOut, Unsupported
from inference_client.images import request_fitted
from inference_client.outgoing import Outgoing, answer_of
from inference_client.pool import Pool
from inference_client.retry import Retry
from inference_client.servers import Server
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    ImagePart,
    Message,
    Ranked,
    RerankRequest,
    Settled,
    Timing,
)
from inference_client.usage import usage_sum

MAX_EMBEDDINGS_BYTES = 512 * 1024 * 1024
MAX_SCORES_BYTES = 64 * 1024 * 1024
"""Some servers send the documents back with their scores."""
_EMBEDS_AT_ONCE = 4


class Client:
    """Keeps connections to the servers it is asked to call. One per event loop; close it with `aclose`."""

    def __init__(self) -> None:
        self._pool = Pool()

    def chat(
        self,
        server: Server,
        request: ChatRequest,
        *,
        precount: int | None = None,
        retry: Retry | None = None,
    ) -> ChatCall:
        """A call that is sent at the first read. `precount` is our own count of the input tokens.

        With `retry` a request that was refused, or never left, is sent again; by itself it never is.

        Raises Unsupported at once when this kind of server is unknown or cannot do what `request` asks.
        """
        kind = _kind(server)
        adapter = adapter_for(kind)
        outgoing = Outgoing(adapter.chat_request(server, kind, _without_bytes(request)))
        if any(map(has_picture, request.messages)):
            outgoing.fitted = lambda: adapter.chat_request(server, kind, request_fitted(request, kind))
        transport, parser = self._pool.transport(server, kind), adapter.parser(kind)
        return ChatCall(transport, server, outgoing, parser, precount=precount, retry=retry)

    async def embed(self, server: Server, request: EmbedRequest) -> Embeddings:
        """One vector per input, in their order. Raises the errors of `errors.py`.

        More inputs than the server takes at once are sent in several requests; the numbers are their sum.
        """
        kind = _kind(server)
        adapter = adapter_for(kind)
        size = adapter.embed_batch(kind, request.model) or len(request.inputs) or 1
        parts = [
            replace(request, inputs=request.inputs[at : at + size])
            for at in range(0, len(request.inputs) or 1, size)
        ]
        limits = server.timeouts
        started, t0 = datetime.now(UTC), asyncio.get_running_loop().time()
        found: list[Embeddings] = []
        try:
            async with asyncio.timeout(limits.total):
                for at in range(0, len(parts), _EMBEDS_AT_ONCE):
                    await self._embed_some(server, kind, parts[at : at + _EMBEDS_AT_ONCE], found)
        except TimeoutError:
            raise _after(found, TimedOut("total", limits.total)) from None
        except InferenceError as exc:
            raise _after(found, exc) from exc.__cause__
        total = asyncio.get_running_loop().time() - t0
        return replace(
            found[0],
            vectors=[vector for one in found for vector in one.vectors],
            usage=usage_sum([one.usage for one in found]),
            timing=Timing(started_at=started, total_s=total),
        )

    async def rerank(self, server: Server, request: RerankRequest) -> Ranked:
        """A score per document, in their order. Raises the errors of `errors.py`."""
        kind = _kind(server)
        wire = rerank_request(server, kind, request)
        started, t0 = datetime.now(UTC), asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(server.timeouts.total):
                status, headers, body = await self._pool.transport(server, kind).fetch(
                    wire.method,
                    wire.url,
                    headers=wire.headers,
                    body=wire.body,
                    connect_s=server.timeouts.connect,
                    max_bytes=MAX_SCORES_BYTES,
                )
        except TimeoutError:
            raise TimedOut("total", server.timeouts.total) from None
        if status >= 300:
            raise failure(status, headers, body)
        total = asyncio.get_running_loop().time() - t0
        return replace(ranked(body, len(request.documents)), timing=Timing(started_at=started, total_s=total))

    async def settled(self, server: Server, upstream_id: str) -> Settled | None:
        """What the call `upstream_id` (of its record) came to; None while the provider does not know it yet.

        Costs nothing. Raises Unsupported where there is no such account (only OpenRouter has one), and the errors
        of `errors.py`.
        """
        kind = _kind(server)
        wire = settled_request(server, kind, upstream_id)
        try:
            async with asyncio.timeout(server.timeouts.idle):
                body = await answer_of(self._pool.transport(server, kind), wire, server.timeouts.connect)
        except TimeoutError:
            raise TimedOut("total", server.timeouts.idle) from None
        except ModelMissing as exc:
            if exc.status == 404:
                return None
            raise
        return settled_read(body)

    async def _embed_some(
        self, server: Server, kind: Kind, parts: list[EmbedRequest], found: list[Embeddings]
    ) -> None:
        """Several requests at once, all to their end: those answered are owed also when another one fails."""
        answers = await asyncio.gather(
            *(self._embed(server, kind, part) for part in parts), return_exceptions=True
        )
        found += [answer for answer in answers if not isinstance(answer, BaseException)]
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _embed(self, server: Server, kind: Kind, request: EmbedRequest) -> Embeddings:
        adapter = adapter_for(kind)
        wire = adapter.embed_request(server, kind, request)
        status, headers, body = await self._pool.transport(server, kind).fetch(
            wire.method,
            wire.url,
            headers=wire.headers,
            body=wire.body,
            connect_s=server.timeouts.connect,
            max_bytes=MAX_EMBEDDINGS_BYTES,
        )
        if status >= 300:
            raise failure(status, headers, body)
        return adapter.embeddings(body, kind, len(request.inputs), headers)

    async def aclose(self) -> None:
        """Close all connections; calls still running end with BrokenStream."""
        await self._pool.aclose()


def _after(found: list[Embeddings], failure: InferenceError) -> InferenceError:
    """`failure` with what was used before it."""
    if found:
        failure.used = usage_sum([one.usage for one in found])
        failure.answered = sum(len(one.vectors) for one in found)
    return failure


def _kind(server: Server) -> Kind:
    try:
        return kind_of(server.kind)
    except LookupError as exc:
        raise Unsupported(str(exc.args[0]), code="unknown_kind") from None


def _without_bytes(request: ChatRequest) -> ChatRequest:
    """`request` with empty pictures: enough to see whether it can be sent, without packing megabytes twice."""
    if not any(map(has_picture, request.messages)):
        return request
    return replace(request, messages=tuple(map(_emptied, request.messages)))


def _emptied(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    parts = (replace(part, data=b"") if isinstance(part, ImagePart) else part for part in message.content)
    return replace(message, content=tuple(parts))

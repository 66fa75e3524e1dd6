"""The client: chat and embeddings on any kind of inference server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from inference_client.adapters import adapter_for
from inference_client.adapters.failures import failure
from inference_client.adapters.kinds import Kind, kind_of
from inference_client.chat_call import ChatCall
from inference_client.errors import TimedOut, Unsupported
from inference_client.retry import Retry
from inference_client.transport import Transport
from inference_client.types import ChatRequest, Embeddings, EmbedRequest, Server, Timing

MAX_EMBEDDINGS_BYTES = 512 * 1024 * 1024


class Client:
    """Keeps connections to the servers it is asked to call. One per event loop; close it with `aclose`."""

    def __init__(self) -> None:
        self._transports: dict[tuple[str, float], Transport] = {}

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
        wire = adapter.chat_request(server, kind, request)
        parser = adapter.parser(kind)
        return ChatCall(self._transport(server, kind), server, wire, parser, precount=precount, retry=retry)

    async def embed(self, server: Server, request: EmbedRequest) -> Embeddings:
        """One vector per input, in their order. Raises the errors of `errors.py`."""
        kind = _kind(server)
        adapter = adapter_for(kind)
        wire = adapter.embed_request(server, kind, request)
        limits = server.timeouts
        started, t0 = datetime.now(UTC), asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(limits.total):
                status, headers, body = await self._transport(server, kind).fetch(
                    wire.method,
                    wire.url,
                    headers=wire.headers,
                    body=wire.body,
                    connect_s=limits.connect,
                    max_bytes=MAX_EMBEDDINGS_BYTES,
                )
        except TimeoutError:
            raise TimedOut("total", limits.total) from None
        if status >= 300:
            raise failure(status, headers, body)
        total = asyncio.get_running_loop().time() - t0
        found = adapter.embeddings(body, kind, len(request.inputs))
        return replace(found, timing=Timing(started_at=started, total_s=total))

    async def aclose(self) -> None:
        """Close all connections; calls still running end with BrokenStream."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()

    def _transport(self, server: Server, kind: Kind) -> Transport:
        scheme, _, rest = server.base_url.partition("://")
        key = (f"{scheme}://{rest.partition('/')[0]}", kind.keepalive_s)
        transport = self._transports.get(key)
        if transport is None:
            transport = self._transports[key] = Transport(keepalive_s=kind.keepalive_s)
        return transport


def _kind(server: Server) -> Kind:
    try:
        return kind_of(server.kind)
    except LookupError as exc:
        raise Unsupported(str(exc.args[0]), code="unknown_kind") from None

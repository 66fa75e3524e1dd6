"""A request on its way out: what must be done before it can be sent, which costs no tokens."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from inference_client.adapters.failures import failure
from inference_client.adapters.wire import WireRequest
from inference_client.transport import Transport

MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Outgoing:
    """A wire request, and how it is made anew with its pictures fitted, where it has any."""

    wire: WireRequest
    fitted: Callable[[], WireRequest] | None = None

    async def ready(self, transport: Transport, connect_s: float) -> WireRequest:
        """The request as it goes out. Raises the errors of `errors.py`."""
        if self.fitted is not None:
            # Scaling pictures would hold up every other stream of the loop.
            self.wire, self.fitted = await asyncio.to_thread(self.fitted), None
        first = self.wire.first
        if first is None:
            return self.wire
        return self.wire._replace(
            body=first.body(await answer_of(transport, first.request, connect_s)), first=None
        )


async def answer_of(transport: Transport, wire: WireRequest, connect_s: float) -> bytes:
    """The body of the answer to a question that is not streamed. Raises the errors of `errors.py`."""
    status, headers, body = await transport.fetch(
        wire.method, wire.url, headers=wire.headers, body=wire.body, connect_s=connect_s, max_bytes=MAX_BYTES
    )
    if status >= 300:
        raise failure(status, headers, body)
    return body

"""The inference client of this event loop. This app is the only one that may import it."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from app.catalog.selectors import Target
from app.common.aio import PerLoop
from app.common.logs import trace_var
from inference_client.client import Client
from inference_client.counting import ServerCounter
from inference_client.servers import Server
from inference_client.tracing import current_trace

COUNT_S = 0.8
"""How long a server may take to count a prompt."""
_clients = PerLoop(Client)
_counted: OrderedDict[bytes, int] = OrderedDict()
"""What servers said of prompts, by their hashes: a turn on another loop than the page that asked finds it too."""
_lone: ContextVar[Client | None] = ContextVar("lone_client", default=None)


@dataclass(slots=True)
class _Shared:
    client: Client = field(default_factory=Client)
    users: int = 0


_shared = PerLoop(_Shared)
server_counter = PerLoop(lambda: ServerCounter(limit_s=COUNT_S, known=_counted))
"""The one of this event loop that asks servers for counts, which costs no tokens."""


def client() -> Client:
    """One pooled client for each event loop, or the one of a surrounding `lone_client`."""
    return _lone.get() or _clients()


@asynccontextmanager
async def lone_client() -> AsyncIterator[None]:
    """Calls inside use a client that ends with them; those that overlap on one loop share its connections."""
    shared = _shared()
    shared.users += 1
    bound = _lone.set(shared.client)
    try:
        yield
    finally:
        _lone.reset(bound)
        shared.users -= 1
        if not shared.users:
            _shared.pop()
            await shared.client.aclose()


async def client_close() -> None:
    """Close this loop's connections, at the end of a process or of a command's loop."""
    for found in (_clients.pop(), server_counter.pop()):
        if found is not None:
            await found.aclose()


def server_of(target: Target) -> Server:
    """The client's view of a deployment's server."""
    return Server(
        kind=target.kind,
        base_url=target.base_url,
        api_key=target.api_key or None,
        abort_stops_billing=target.abort_stops_billing,
        options=target.options,
    )


def trace_towards(target: Target) -> None:
    """From here on calls of this context carry the trace as this server may see it."""
    trace = trace_var.get()
    current_trace.set(trace.without_state() if trace is not None and target.leaves_premises else trace)

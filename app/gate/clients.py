"""The inference client of this event loop. This app is the only one that may import it."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from app.catalog.selectors import Target
from app.common.logs import trace_var
from inference_client.client import Client
from inference_client.counting import ServerCounter
from inference_client.tracing import current_trace
from inference_client.types import Server

COUNT_S = 0.8
"""How long a server may take to count a prompt."""
_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()
_counted: OrderedDict[bytes, int] = OrderedDict()
"""What servers said of prompts, by their hashes: a turn on another loop than the page that asked finds it too."""
_counters: WeakKeyDictionary[asyncio.AbstractEventLoop, ServerCounter] = WeakKeyDictionary()
_lone: ContextVar[Client | None] = ContextVar("lone_client", default=None)


@dataclass(slots=True)
class _Shared:
    client: Client
    users: int = 0


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


def client() -> Client:
    """One pooled client for each event loop, or the one of a surrounding `lone_client`."""
    if (lone := _lone.get()) is not None:
        return lone
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Client()
    return found


@asynccontextmanager
async def lone_client() -> AsyncIterator[None]:
    """Calls inside use a client that ends with them; those that overlap on one loop share its connections."""
    loop = asyncio.get_running_loop()
    shared = _shared.get(loop)
    if shared is None:
        shared = _shared[loop] = _Shared(Client())
    shared.users += 1
    bound = _lone.set(shared.client)
    try:
        yield
    finally:
        _lone.reset(bound)
        shared.users -= 1
        if not shared.users:
            del _shared[loop]
            await shared.client.aclose()


def server_counter() -> ServerCounter:
    """The one of this event loop that asks servers for counts, which costs no tokens."""
    loop = asyncio.get_running_loop()
    found = _counters.get(loop)
    if found is None:
        found = _counters[loop] = ServerCounter(limit_s=COUNT_S, known=_counted)
    return found


async def client_close() -> None:
    """Close this loop's connections, at the end of a process or of a command's loop."""
    loop = asyncio.get_running_loop()
    for found in (_by_loop.pop(loop, None), _counters.pop(loop, None)):
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

"""How far a request came: whether a connection was there, and whether it had been used before.

Money hangs on it: a request without a connection was certainly never sent, and one on a used connection may be
sent once more when the server closed it without a byte.
"""

import time
from contextvars import ContextVar
from functools import partial
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace


class Sending:
    """How far a request has come; the transport writes it, the caller reads it after a failure."""

    __slots__ = ("connected", "dialled_s", "reused")

    def __init__(self) -> None:
        self.connected = False
        """A connection was there, so the server may have seen the request."""
        self.reused = False
        """That connection had served an earlier request."""
        self.dialled_s: float | None = None
        """Seconds until it was there; next to nothing when it was there already."""


current_sending: ContextVar[Sending] = ContextVar("inference_client_sending")


class _Unhurried(ResponseHandler):
    """Resumes only what was paused.

    The body's reader asks for that with every piece it takes out, and each time the parser is run over nothing: of an
    answer of 64 tokens that came at once, a tenth of all our CPU time.
    """

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)


class NotingConnector(aiohttp.TCPConnector):
    """Notes on the current `Sending` when a connection is there, and whether it is a used one."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        handler: type[ResponseHandler] = _Unhurried
        self._factory = partial(handler, loop=self._loop)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the base class's name
    ) -> Connection:
        began = time.perf_counter()
        connection = await super().connect(req, traces, timeout)
        sending, protocol = current_sending.get(), connection.protocol
        assert protocol is not None
        sending.connected = True
        sending.dialled_s = time.perf_counter() - began
        sending.reused = protocol in self._used
        self._used.add(protocol)
        return connection

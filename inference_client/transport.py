"""The one place that speaks HTTP: aiohttp's sockets, and httpx's names for what goes wrong with them.

httpx's own transport leaks pool slots when a request is cancelled while it connects, and costs two to four
times as much per chunk; its requests and responses alone cost a tenth of a call. The package `httpx-aiohttp` names
errors in ways that would make a caller pay twice (a POST the server read and dropped becomes a ConnectTimeout).
`Sockets` gives every fault the name httpx itself gives it.

Two of httpx's time limits have no counterpart here. There is no pool limit, because there is no pool queue:
how many calls a server gets at once is the limiter's business. There is no write limit; a body that the
server will not take runs into the caller's limit for the first byte.
"""

import asyncio
import io
import ssl
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NoReturn

import aiohttp
import httpx
from yarl import URL

from inference_client.connector import NotingConnector, Sending, current_sending
from inference_client.errors import BrokenStream, MalformedAnswer, Unreachable
from inference_client.tracing import trace_headers

KEEPALIVE_S = 2.0
MAX_HEADER_BYTES = 64 * 1024
LARGE_BODY_BYTES = 256 * 1024
_USER_AGENT = "tessera-inference-client"
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Sockets:
    """aiohttp's sockets with httpx's meaning of every error.

    A POST on a used connection that the server closed before it sent one byte is sent once more: the server
    closed an idle connection at the moment we wrote to it.
    """

    def __init__(self, *, keepalive_s: float = KEEPALIVE_S) -> None:
        self._keepalive_s = keepalive_s
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        limits: aiohttp.ClientTimeout,
        sending: Sending | None = None,
    ) -> aiohttp.ClientResponse:
        """Send and wait for the headers of the answer, of any status. Raises httpx.TransportError, httpx.InvalidURL."""
        sending = sending or Sending()
        token = current_sending.set(sending)
        try:
            try:
                return await self._once(method, url, headers, body, limits)
            except (aiohttp.ClientError, OSError) as exc:
                if not (sending.reused and _closed_unread(exc)):
                    raise
            return await self._once(method, url, headers, body, limits)
        except (aiohttp.ClientError, OSError) as exc:
            raise _meaning(exc) from exc
        finally:
            current_sending.reset(token)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = self._new_session()
        address = _address(url)
        return await self._session.request(
            method,
            address,
            headers=headers,
            data=_body(body),
            allow_redirects=False,
            timeout=limits,
            ssl=_trust() if address.scheme == "https" else True,
        )

    def _new_session(self) -> aiohttp.ClientSession:
        connector = NotingConnector(limit=0, keepalive_timeout=self._keepalive_s)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )


def _body(content: bytes) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes in one go; a large prompt would hold up every other stream of the loop.
    return io.BytesIO(content) if len(content) > LARGE_BODY_BYTES else content or None


@lru_cache(1024)
def _address(url: str) -> URL:
    """Read by httpx, which is strict about it, once: every call of a deployment goes to one of a few addresses."""
    return URL(str(httpx.URL(url)), encoded=True)


@cache
def _trust() -> ssl.SSLContext:
    """The certificates httpx trusts; reading them takes longer than a call."""
    return httpx.create_ssl_context()


def _closed_unread(exc: Exception) -> bool:
    """Whether the connection went away without one byte of an answer."""
    if isinstance(exc, aiohttp.ServerDisconnectedError):
        return isinstance(exc.message, str)
    return isinstance(exc, aiohttp.ClientOSError) and not isinstance(exc, aiohttp.ClientConnectorError)


def _meaning(exc: Exception) -> httpx.TransportError:
    """The httpx exception that says what `exc` says. The order matters: later classes hold earlier ones."""
    kinds: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
        (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
        (aiohttp.ClientProxyConnectionError, httpx.ProxyError),
        (aiohttp.ClientConnectorError, httpx.ConnectError),
        (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
        (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
        (aiohttp.SocketTimeoutError, httpx.ReadTimeout),
        (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
        (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
        (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
        (OSError, httpx.ReadError),
    )
    chosen = next((to for kind, to in kinds if isinstance(exc, kind)), httpx.ReadError)
    return chosen(str(exc) or type(exc).__name__)


class Reply:
    """A response whose body is still to be read."""

    __slots__ = ("_content", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.raw_headers
        }
        """By their names in lower case."""
        self._response = response
        self._content = response.content

    async def read(self) -> bytes:
        """Everything that has arrived, waiting if nothing has; empty at the end of the body.

        Raises BrokenStream when the connection ends before the body does, also after `close`.
        """
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, OSError, RuntimeError) as exc:
            # aiohttp reports a lost connection before it hands out what had arrived until then.
            data = self._content._read_nowait(-1)  # noqa: SLF001 - there is no public way to these bytes
            if not data:
                raise BrokenStream(code="connection_lost", upstream=str(_meaning(exc))) from exc
            return data

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else drop it. May be called twice."""
        if self._content.is_eof():
            self._response.release()
        else:
            self._response.close()


class Transport:
    """A pool of connections to one server. Make it and use it in one event loop."""

    def __init__(self, *, keepalive_s: float = KEEPALIVE_S) -> None:
        self._sockets = Sockets(keepalive_s=keepalive_s)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        connect_s: float,
        sending: Sending | None = None,
    ) -> Reply:
        """Send and wait for the headers of the answer, of any status.

        Raises Unreachable when the request was certainly never sent, BrokenStream when it may have been.
        Cancelling drops the connection.
        """
        sent = {"user-agent": _USER_AGENT, "accept-encoding": "identity", **trace_headers(), **headers}
        limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        try:
            return Reply(
                await self._sockets.request(
                    method, url, headers=sent, body=body, limits=limits, sending=sending
                )
            )
        except httpx.InvalidURL as exc:
            raise Unreachable(code="invalid_url", upstream=str(exc)) from exc
        except httpx.TransportError as exc:
            _raise(exc)

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        connect_s: float,
        max_bytes: int,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """(status, headers, whole body). Raises as `send`, and MalformedAnswer over `max_bytes`."""
        reply = await self.send(method, url, headers=headers, body=body, connect_s=connect_s)
        try:
            return reply.status, reply.headers, await read_all(reply, max_bytes)
        finally:
            reply.close()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sockets.aclose()
        # aiohttp closes sockets on the next turn of the loop; without it they are reported as leaked.
        await asyncio.sleep(0)


async def read_all(reply: Reply, max_bytes: int) -> bytes:
    """The whole body of `reply`. Raises BrokenStream, and MalformedAnswer over `max_bytes`."""
    parts: list[bytes] = []
    size = 0
    while data := await reply.read():
        size += len(data)
        if size > max_bytes:
            raise MalformedAnswer(code="answer_too_large")
        parts.append(data)
    return b"".join(parts)


def _raise(exc: httpx.TransportError) -> NoReturn:
    if isinstance(exc, _NEVER_SENT):
        raise Unreachable(code=type(exc).__name__, upstream=str(exc)) from exc
    raise BrokenStream(code="connection_lost", upstream=str(exc)) from exc

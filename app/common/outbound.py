"""The address-checked door: HTTP to addresses that people or settings name, such as webhooks and pages of metrics.

An address is resolved once, every answer is checked, and the connection goes to the checked number, so a name that
points elsewhere a moment later gains nothing. What is private, loopback or link-local is refused unless
`OUTBOUND_ALLOW` names the host; a cloud's metadata address is refused always.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import httpx
from asgiref.sync import async_to_sync
from django.conf import settings

from app.common.errors import InvalidInput, PartFailed

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host, port) → addresses as text, the best first; OSError when there is none."""

MAX_BYTES = 1024 * 1024
TIMEOUT_S = 10.0
_REDIRECTS = 3
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class OutboundRefused(InvalidInput):
    """This address is not one that may be called from here."""


class OutboundFailed(PartFailed):
    """The other side does not answer, not in time, or says too much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One request. It is over after `timeout_s`, whatever the other side does."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_s: float = TIMEOUT_S
    max_bytes: int = MAX_BYTES
    """Of the answer's body; more is refused, not cut."""
    trusted: Collection[str] = ()
    """Hosts that staff have configured as their own servers: they may be private and speak plain http."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; any status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


async def addresses_of(host: str, port: int) -> Sequence[str]:
    """What this machine's resolver says. Errors: OSError."""
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


async def send(request: Outbound, *, resolve: Resolver = addresses_of) -> Answer:
    """Send it and read the whole answer. Redirects are followed on the same scheme, host and port only.

    Errors: OutboundRefused (an address or redirect that is not allowed), OutboundFailed.
    """
    url = _checked(request.url, request.trusted)
    try:
        async with asyncio.timeout(request.timeout_s):
            addresses = await _allowed_addresses(url, request.trusted, resolve)
            for _ in range(_REDIRECTS + 1):
                answer = await _exchange(request, url, addresses)
                onward = _onward(url, answer)
                if onward is None:
                    return answer
                if request.method not in {"GET", "HEAD"} and answer.status not in {307, 308}:
                    raise OutboundRefused(
                        f"{url.host} redirects a {request.method}, which would lose its body."
                    )
                url = onward
    except TimeoutError as exc:
        raise OutboundFailed(url.host, f"{url.host} did not answer within {request.timeout_s:g} s.") from exc
    except httpx.HTTPError as exc:
        # The class says what happened; the text of some names the whole address, which may carry a secret.
        raise OutboundFailed(url.host, f"{url.host} cannot be called: {type(exc).__name__}.") from exc
    raise OutboundFailed(url.host, f"{url.host} redirects in a circle.")


def send_now(request: Outbound, *, resolve: Resolver = addresses_of) -> Answer:
    """`send` for sync code, such as tasks."""
    return async_to_sync(send)(request, resolve=resolve)


def address_check(url: str, *, trusted: Collection[str] = ()) -> str:
    """A URL that may be kept as somebody's webhook; what its name resolves to is checked when it is called.

    Errors: OutboundRefused for what is no address, for plain http, and for a number of a private network.
    """
    checked = _checked(url, trusted)
    if (number := _number(checked.host)) is not None and not _allowed(checked, trusted):
        _refuse_private(checked.host, number)
    return str(checked)


def _checked(url: str, trusted: Collection[str]) -> httpx.URL:
    try:
        parsed = httpx.URL(url.strip())
    except httpx.InvalidURL as exc:
        raise OutboundRefused("This is no address of the form https://host/path.") from exc
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise OutboundRefused("This is no address of the form https://host/path.")
    if parsed.userinfo or parsed.fragment:
        raise OutboundRefused("The address may hold no user, password or fragment.")
    if parsed.scheme == "http" and not _allowed(parsed, trusted):
        raise OutboundRefused(
            f"{parsed.host} would be called over plain http, where anybody on the way can read along. "
            "Use https, or name the host in OUTBOUND_ALLOW."
        )
    return parsed


def _allowed(url: httpx.URL, trusted: Collection[str]) -> bool:
    """Whether the setting or the caller vouches for this host, as `host` or `host:port`."""
    named = {entry.lower().strip("[]") for entry in (*settings.OUTBOUND_ALLOW, *trusted)}
    port = url.port or (443 if url.scheme == "https" else 80)
    return url.host.lower() in named or f"{url.host.lower()}:{port}" in named


async def _allowed_addresses(url: httpx.URL, trusted: Collection[str], resolve: Resolver) -> Sequence[str]:
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = await resolve(url.host, port)
    except (OSError, UnicodeError) as exc:
        raise OutboundFailed(url.host, f"Nobody knows the host {url.host}.") from exc
    numbers = [ipaddress.ip_address(text) for text in found]
    for number in numbers:
        # One bad answer among good ones is how a name is made to point inward, so it spoils them all.
        if _plain(number) in _METADATA or not _allowed(url, trusted):
            _refuse_private(url.host, number)
    return [str(number) for number in numbers]


def _refuse_private(host: str, number: IPAddress) -> None:
    plain = _plain(number)
    if plain in _METADATA or not plain.is_global or plain.is_multicast:
        raise OutboundRefused(
            f"{host} is an address of this machine or of a private network, which is not called from here. "
            "If it is meant, an administrator can name the host in OUTBOUND_ALLOW."
        )


def _plain(number: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv6 one, where there is one: a mapped, translated or tunnelled one."""
    if isinstance(number, ipaddress.IPv4Address):
        return number
    if number in _NAT64:
        return ipaddress.IPv4Address(int(number) & 0xFFFFFFFF)
    return number.ipv4_mapped or number.sixtofour or number


def _number(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def _exchange(request: Outbound, url: httpx.URL, addresses: Sequence[str]) -> Answer:
    """One request to the first of the checked addresses that takes a connection."""
    async with httpx.AsyncClient(
        verify=_trust(settings.OUTBOUND_CA_FILE), trust_env=False, timeout=request.timeout_s
    ) as client:
        for address in addresses:
            try:
                return await _once(client, request, url, address)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
    raise OutboundFailed(url.host, f"The host {url.host} has no address.")


async def _once(client: httpx.AsyncClient, request: Outbound, url: httpx.URL, address: str) -> Answer:
    outgoing = client.build_request(
        request.method,
        url.copy_with(host=address),
        # Asked for plain, so that a small answer cannot unfold into a large one.
        headers={**request.headers, "Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity"},
        content=request.body or None,
        extensions={"sni_hostname": url.raw_host.decode("ascii")},
    )
    response = await client.send(outgoing, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > request.max_bytes:
                raise OutboundFailed(
                    url.host, f"{url.host} answers with more than {request.max_bytes} bytes."
                )
    finally:
        await response.aclose()
    return Answer(
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        body=bytes(body),
    )


def _onward(url: httpx.URL, answer: Answer) -> httpx.URL | None:
    """Where a redirect leads; None when there is none. Errors: OutboundRefused when it leads elsewhere."""
    if answer.status not in {301, 302, 303, 307, 308} or "location" not in answer.headers:
        return None
    onward = url.join(answer.headers["location"])
    if (onward.scheme, onward.host, onward.port) != (url.scheme, url.host, url.port):
        raise OutboundRefused(
            f"{url.host} redirects to another host or port, which is not followed. Enter that address itself."
        )
    return onward


@cache
def _trust(ca_file: str) -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context

"""Documents from the web, fetched so that an address leads nowhere else: one of the three doors for HTTP.

A name is resolved once for each hop, every answer is checked, and the connection goes to the checked number, so a name
that points elsewhere a moment later gains nothing. Redirects pass the same check.
"""

import email.message
import ipaddress
import re
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from retrieval.errors import Invalid, RetrievalError, TooLarge

Resolver = Callable[[str, int], Sequence[str]]
"""(host, port) → addresses as text, the best first; OSError when there is none."""
_REDIRECTS = 5
_REDIRECTED = frozenset({301, 302, 303, 307, 308})
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
}
_NO_SUFFIX = frozenset({"", ".php", ".asp", ".aspx", ".jsp", ".cgi", ".com", ".org", ".net"})
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]")


class AddressRefused(Invalid):
    """This address is not one that may be fetched from here."""

    code = "address_refused"

    def __init__(self, message: str) -> None:
        super().__init__("url", message)


class FetchFailed(RetrievalError):
    """The other side did not answer, not in time, or not with a document."""

    code = "fetch_failed"
    status = 422


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much, how long and how far a fetch may go."""

    bytes: int = 100_000_000
    seconds: float = 60.0
    """From the first hop to the last byte."""
    redirects: int = _REDIRECTS
    allow: Collection[str] = ()
    """Hosts, or host:port, that may be private: the installation's own wiki, for instance."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document that now lies in a file."""

    url: str
    """Where it came from in the end, after redirects."""
    name: str
    """With a suffix where the server says what it is; for messages and to tell text formats apart."""
    mime: str
    bytes: int


def addresses_of(host: str, port: int) -> Sequence[str]:
    """What this machine's resolver says. Errors: OSError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def fetch(
    url: str, into: Path, *, limits: FetchLimits | None = None, resolve: Resolver = addresses_of
) -> Fetched:
    """Fetch a document into the file `into`. Errors: AddressRefused, FetchFailed, TooLarge."""
    limits = limits or FetchLimits()
    deadline = time.monotonic() + limits.seconds
    # No proxy or netrc of the environment: they would make the request in this machine's name.
    with httpx.Client(trust_env=False, follow_redirects=False) as client:
        for _ in range(limits.redirects + 1):
            with _answer(client, url, limits, resolve, deadline) as answer:
                target = answer.headers.get("location")
                if answer.status_code not in _REDIRECTED or not target:
                    return _kept(answer, url, into, limits, deadline)
            url = urljoin(url, target)
    raise FetchFailed(
        f"The address leads on more than {limits.redirects} times, so nothing was fetched. Give the final address."
    )


@contextmanager
def _answer(
    client: httpx.Client, url: str, limits: FetchLimits, resolve: Resolver, deadline: float
) -> Iterator[httpx.Response]:
    host, port, address = _checked(url, limits, resolve)
    parts = urlsplit(url)
    at = f"[{address}]" if ":" in address else address
    there = httpx.URL(url).copy_with(host=at, port=port, username=None, password=None)
    request = client.build_request(
        "GET",
        there,
        headers={
            "host": parts.netloc.rpartition("@")[2],
            "user-agent": "Tessera",
            "accept": "*/*",
            # What is not packed cannot be a bomb.
            "accept-encoding": "identity",
        },
        timeout=max(0.1, deadline - time.monotonic()),
        extensions={"sni_hostname": host},
    )
    try:
        answer = client.send(request, stream=True)
    except httpx.HTTPError as exc:
        raise FetchFailed(
            f"{host} does not answer ({type(exc).__name__}), so nothing was fetched. Check the address and try again."
        ) from exc
    try:
        yield answer
    finally:
        answer.close()


def address_parts(url: str) -> tuple[str, int]:
    """Host and port of an address that may be tried. Errors: AddressRefused for what never can be."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = (parts.hostname or "").encode("idna").decode("ascii") if parts.hostname else ""
    except (ValueError, UnicodeError) as exc:
        raise AddressRefused("This is no address of a web page. It begins with https:// or http://.") from exc
    if parts.scheme not in {"http", "https"} or not host:
        raise AddressRefused("Only addresses that begin with https:// or http:// are fetched.")
    if parts.username or parts.password:
        raise AddressRefused("An address with a password in it is not fetched; download the file yourself.")
    return host, port


def _checked(url: str, limits: FetchLimits, resolve: Resolver) -> tuple[str, int, str]:
    """Host, port and the address to connect to. Errors: AddressRefused, FetchFailed."""
    host, port = address_parts(url)
    try:
        found = list(resolve(host, port))
    except OSError as exc:
        raise FetchFailed(f"There is no server by the name {host}. Check the address.") from exc
    if {host, f"{host}:{port}"}.isdisjoint(limits.allow):
        # One private answer among public ones is how a name is made to point inside.
        for address in found:
            if not _is_public(address):
                raise AddressRefused(
                    f"{host} is an address inside this network or of this machine, which must not be read from here. "
                    "Download the file and upload it."
                )
    if not found:
        raise FetchFailed(f"There is no server by the name {host}. Check the address.")
    return host, port, found[0]


def _is_public(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        # Other addresses in the dress of IPv6.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return inner.is_global and not inner.is_multicast
        if any(ip in network for network in _NAT64):
            return False
    return ip.is_global and not ip.is_multicast


def _kept(answer: httpx.Response, url: str, into: Path, limits: FetchLimits, deadline: float) -> Fetched:
    host = urlsplit(url).hostname
    if answer.status_code != 200:
        raise FetchFailed(
            f"{host} answers with status {answer.status_code}, so nothing was fetched. "
            "If the page needs a sign-in, download the file yourself and upload it."
        )
    if int(answer.headers.get("content-length") or 0) > limits.bytes:
        raise TooLarge(limit=limits.bytes, what="file at this address")
    size = 0
    try:
        with into.open("wb") as file:
            for piece in answer.iter_bytes(65_536):
                size += len(piece)
                if size > limits.bytes:
                    raise TooLarge(limit=limits.bytes, what="file at this address")
                if time.monotonic() > deadline:
                    raise FetchFailed(
                        f"{host} took longer than {limits.seconds:.0f} seconds and was stopped. Download the file "
                        "yourself and upload it."
                    )
                file.write(piece)
    except httpx.HTTPError as exc:
        raise FetchFailed(f"{host} broke off in the middle of the file. Try again.") from exc
    mime = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(url, _name(answer, url, mime), mime, size)


def _name(answer: httpx.Response, url: str, mime: str) -> str:
    """What the server calls it, else the end of the path, else the host."""
    message = email.message.Message()
    message["content-disposition"] = answer.headers.get("content-disposition", "")
    parts = urlsplit(url)
    given = message.get_filename() or PurePosixPath(unquote(parts.path)).name or parts.hostname or "document"
    name = _UNSAFE.sub("_", str(given))[-200:]
    known = PurePosixPath(name).suffix.lower() not in _NO_SUFFIX
    return name if known else name + _SUFFIXES.get(mime, "")

"""From which address a request comes, when proxies may stand before this process."""

import ipaddress
from collections.abc import Iterable

from django.conf import settings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_of(peer: str, forwarded: str) -> str:
    """The caller's address: the socket's peer, or what the outermost of `TRUSTED_PROXIES` proxies saw.

    Each proxy appends the address it was called from to X-Forwarded-For, so only the last so many entries are true;
    whatever stands before them was written by the caller. Without trusted proxies the header means nothing.
    """
    count = settings.TRUSTED_PROXIES
    hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
    if count < 1 or not hops:
        return peer
    return hops[-count] if len(hops) >= count else hops[0]


def network_of(text: str) -> Network:
    """A network in CIDR form, or one address. Errors: ValueError."""
    return ipaddress.ip_network(text.strip(), strict=False)


def is_within(address: str, networks: Iterable[str]) -> bool:
    """Whether an address lies in one of the networks. What is no address lies in none."""
    try:
        found = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return any(found in network_of(text) for text in networks)

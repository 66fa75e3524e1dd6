"""One pool of connections for each server."""

from inference_client.adapters.kind import Kind
from inference_client.servers import Server
from inference_client.transport import Transport


class Pool:
    """The transports of the servers asked so far. Use it in one event loop; close it with `aclose`."""

    def __init__(self) -> None:
        self._transports: dict[tuple[str, float], Transport] = {}

    def transport(self, server: Server, kind: Kind) -> Transport:
        """The connections to the server, which those of one host share."""
        scheme, _, rest = server.base_url.partition("://")
        key = (f"{scheme}://{rest.partition('/')[0]}", kind.keepalive_s)
        found = self._transports.get(key)
        if found is None:
            found = self._transports[key] = Transport(keepalive_s=kind.keepalive_s)
        return found

    async def aclose(self) -> None:
        """Close all connections; calls still running on them end with BrokenStream."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()

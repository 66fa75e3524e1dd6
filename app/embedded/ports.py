"""Free ports on the loopback interface, the same ones again when possible."""

import json
import socket

from app.embedded.errors import EmbeddedError
from app.embedded.paths import Layout, write_private

HOST = "127.0.0.1"
WEB_PORT = 8000


def port_is_free(port: int) -> bool:
    """True when nothing listens on 127.0.0.1:`port` now."""
    with socket.socket() as probe:
        # As the servers do: a port whose old connections are in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _any_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port


def ports_remembered(layout: Layout) -> dict[str, int]:
    """Ports of the last start, by part."""
    try:
        return {str(name): int(port) for name, port in json.loads(layout.ports.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def ports_choose(layout: Layout, names: tuple[str, ...], web: int | None = None) -> dict[str, int]:
    """A free port for each of `names`: the last start's when still free, else any.

    Args:
        names: the parts to be started; `web` first tries `web`, and only that when it is given.
    Raises:
        EmbeddedError: the port asked for is taken.
    """
    before = ports_remembered(layout)
    chosen: dict[str, int] = {}
    for name in names:
        wished = before.get(name) or (WEB_PORT if name == "web" else 0)
        if name == "web" and web:
            if not port_is_free(web):
                raise EmbeddedError(
                    f"Port {web} is in use. Choose another with --port, or leave it out for a free one."
                )
            wished = web
        free = wished and wished not in chosen.values() and port_is_free(wished)
        chosen[name] = wished if free else _any_port(set(chosen.values()))
    write_private(layout.ports, json.dumps({**before, **chosen}))
    return chosen

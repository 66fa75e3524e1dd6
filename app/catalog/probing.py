"""What a server is and serves, and where it stands, looked at before it becomes a row. Costs no tokens."""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync

from app.common.errors import InvalidInput
from inference_client.adapters.kinds import GENERIC, KINDS, kind_of
from inference_client.errors import BadAuth
from inference_client.probe import models_listed, probe
from inference_client.servers import ModelFacts, Server

_NOT_FOR_CHAT = (
    "embed", "rerank", "bge-", "e5-", "whisper", "transcribe", "tts", "audio", "realtime", "dall-e", "image",
    "moderation", "sora",
)  # fmt: skip
"""Parts of names; servers do not say what a model is for."""
METRICS_URL = "metrics_url"
"""Option of every kind whose figures are elsewhere (Triton's own port, a DCGM exporter): an address or several."""
_OURS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "127.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "::1/128", "::/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
"""Loopback, private and link-local; `is_private` would count networks kept for documentation too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a server answered."""

    reachable: bool
    kind: str
    """As it was named, else as it looks, else the generic one."""
    models: tuple[ModelFacts, ...] = ()
    """All it lists, those in its memory first."""
    healthy: bool | None = None
    version: str | None = None
    key_refused: bool = False
    problem: str | None = None
    """One sentence on what is wrong and what to do."""

    @property
    def chat_models(self) -> tuple[ModelFacts, ...]:
        """Those whose name does not say that they are for something else."""
        return tuple(m for m in self.models if not any(word in m.name.lower() for word in _NOT_FOR_CHAT))

    def model(self, name: str) -> ModelFacts:
        """What is known of the model of this name; of one that is not listed only the name."""
        same = {name, f"{name}:latest"}
        known = next((m for m in self.models if m.name in same), None)
        return replace(known, name=name) if known else ModelFacts(name=name)

    def lists(self, name: str) -> bool:
        """Whether the server lists it; Ollama's `name` means `name:latest`."""
        return any(m.name in {name, f"{name}:latest"} for m in self.models)


def options_read(kind: str, pairs: Sequence[str]) -> dict[str, str]:
    """`name=value` texts as options of a kind. Errors: InvalidInput naming those that the kind knows."""
    known = (*KINDS[kind].options, METRICS_URL)
    found = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in known or not value:
            raise InvalidInput(
                f"`{pair}` is no option of {kind}. Give name=value; its names: {', '.join(known)}.",
                detail={"field": "options"},
            )
        found[name] = value
    return found


def server_ask(
    url: str, api_key: str = "", *, kind: str = "", options: Mapping[str, Any] | None = None
) -> Found:
    """Ask the server at `url` what it is and serves; five seconds at most. Errors: InvalidInput on an unknown kind.

    A named `kind` whose key travels in a header of its own is asked for its list of models only, where it has one; it
    counts as reachable all the same, because many such addresses are behind a proxy that lists nothing.
    """
    named = kind_named(kind) if kind else ""
    if named and (KINDS[named].auth != GENERIC.auth or KINDS[named].models_path is None):
        own = Server(kind=named, base_url=url, api_key=api_key or None, options=dict(options or {}))
        if KINDS[named].auth == "sigv4":
            return Found(reachable=True, kind=named)
        models, problem = async_to_sync(models_listed)(own)
        return Found(
            reachable=True,
            kind=named,
            models=models,
            problem=problem,
            key_refused=problem == BadAuth().message,
        )
    return async_to_sync(_ask)(url, api_key or None, named)


def kind_named(name: str) -> str:
    """The proper name of a kind of server. Errors: InvalidInput naming those there are."""
    try:
        return kind_of(name).name
    except LookupError as exc:
        raise InvalidInput(str(exc), detail={"field": "kind"}) from exc


def address_clean(url: str) -> str:
    """A server's address without the slash at its end. Errors: InvalidInput for what is none, or carries a secret."""
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as exc:
        raise _no_address() from exc
    if not sound or any(c.isspace() for c in text):
        raise _no_address()
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "The address may hold no user, password or query; give the key apart.", detail={"field": "url"}
        )
    return text


def _no_address() -> InvalidInput:
    return InvalidInput("A server's address looks like http://host:8000/v1.", detail={"field": "url"})


def on_premises(url: str) -> bool:
    """Whether all addresses of the host are of this machine or a private network; a name nobody knows is outside."""
    host = urlsplit(url).hostname or ""
    try:
        return _private(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(_private(ipaddress.ip_address(row[4][0])) for row in found)


def _private(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in _OURS)


async def _ask(url: str, api_key: str | None, named: str) -> Found:
    facts = await probe(url, api_key)
    return Found(
        reachable=facts.reachable,
        kind=named or facts.kind or GENERIC.name,
        models=facts.models,
        healthy=facts.healthy,
        version=facts.version,
        key_refused=facts.key_refused,
        problem=facts.problem,
    )

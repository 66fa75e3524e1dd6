"""Where a server's routes are, and how its key is sent."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from inference_client.adapters.kind import Kind
from inference_client.servers import Server

_PLACE = re.compile(r"\{(\w+)\}")


def api_url(server: Server, kind: Kind, path: str, model: str = "") -> str:
    """`path` below the server's API root, which may be given with or without its version.

    A version in the middle counts too: `…/v1beta/openai`, `…/v1/projects/p/locations/l/publishers/google`.
    """
    if kind.version_path is None:
        return model_url(server, kind, path, model)
    base = server.base_url.rstrip("/")
    versioned = any(_version(part) for part in base.partition("://")[2].split("/")[1:])
    return f"{base}{'' if versioned else kind.version_path}{_filled(server, kind, path, model)}"


def root_url(server: Server, path: str) -> str:
    """`path` below the server's root, for routes such as `/health` that stand beside the API."""
    base = server.base_url.rstrip("/")
    return base.removesuffix(_version(base)) + path


def model_url(server: Server, kind: Kind, path: str, model: str, *, safe: str = "") -> str:
    """`path` below the server's root, with the model's name in it; characters in `safe` are not encoded."""
    return root_url(server, _filled(server, kind, path, model, safe))


def option(server: Server, kind: Kind, name: str, model: str = "") -> Any:
    """What the server says of `name` for this model, else for all, else what holds for its kind; or None."""
    by_model: Mapping[str, Any] = server.options.get("models", {}).get(model, {})
    for said in (by_model, server.options, kind.options):
        if name in said:
            return said[name]
    return None


def auth_headers(server: Server, kind: Kind) -> dict[str, str]:
    """The headers that carry the key, with the server's own headers over them. A signature is made later."""
    headers: dict[str, str] = dict(kind.extra_headers)
    if server.api_key and kind.auth == "bearer":
        headers["authorization"] = f"Bearer {server.api_key}"
    elif server.api_key and kind.auth != "sigv4":
        headers[kind.auth] = server.api_key
    headers.update({name.lower(): value for name, value in server.headers.items()})
    return headers


def path_pattern(path: str) -> re.Pattern[str]:
    """What the end of a request's path looks like for the route `path` of a Kind."""
    bare = path.partition("?")[0]
    return re.compile(
        "".join("[^/]+" if n % 2 else re.escape(t) for n, t in enumerate(_PLACE.split(bare))) + "$"
    )


def _filled(server: Server, kind: Kind, path: str, model: str, safe: str = "") -> str:
    """`path` with its places filled. A name may hold `/` and `:`, so it becomes one encoded piece."""

    def value(place: re.Match[str]) -> str:
        name = place.group(1)
        return quote(model if name == "model" else str(option(server, kind, name, model)), safe=safe)

    return _PLACE.sub(value, path)


def _version(base: str) -> str:
    """The `/v1` at the end of `base`, or an empty string."""
    last = base.rpartition("/")[2]
    return f"/{last}" if last[:1] == "v" and last[1:2].isdigit() else ""

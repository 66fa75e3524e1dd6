"""The kinds of server that are known, and who speaks to each. Adapters are found, not listed.

Every file beside this one that has an `ADAPTER` is a wire format; so is every entry point of other packages in the
group `inference_client.adapters`. No adapter imports this module.
"""

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from inference_client import adapters
from inference_client.adapters.adapter import Adapter
from inference_client.adapters.base import Parser
from inference_client.adapters.kind import Kind
from inference_client.adapters.openai_kinds import GENERIC

__all__ = ["ADAPTERS", "GENERIC", "GROUP", "KINDS", "Kind", "adapter_for", "found", "kind_of", "parser_for"]

GROUP = "inference_client.adapters"


def found(entries: Iterable[EntryPoint]) -> dict[str, Adapter]:
    """The adapters of this folder and of `entries`, by name, the OpenAI shape first.

    Raises RuntimeError for one that cannot be used, naming it.
    """
    ours = [adapter for module in _modules() if (adapter := getattr(import_module(module), "ADAPTER", None))]
    known: dict[str, Adapter] = {}
    names: set[str] = set()
    for adapter in (*sorted(ours, key=lambda one: one.name != "openai_chat"), *map(_loaded, entries)):
        taken = names & {word for kind in adapter.kinds for word in (kind.name, *kind.aliases)}
        if adapter.name in known or taken:
            raise RuntimeError(f"Two adapters claim the name {min(taken or {adapter.name})!r}. Rename one.")
        known[adapter.name] = adapter
        names |= {word for kind in adapter.kinds for word in (kind.name, *kind.aliases)}
    return known


def _modules() -> Iterator[str]:
    for module in pkgutil.iter_modules(adapters.__path__, f"{adapters.__name__}."):
        if module.name != __name__:
            yield module.name


def _loaded(entry: EntryPoint) -> Adapter:
    try:
        adapter = entry.load()
    except (ImportError, AttributeError) as exc:
        raise RuntimeError(f"The adapter {entry.name!r} ({entry.value}) cannot be loaded: {exc}.") from exc
    if isinstance(adapter, Adapter):
        return adapter
    raise RuntimeError(f"The adapter {entry.name!r} ({entry.value}) is no Adapter.")


ADAPTERS: Mapping[str, Adapter] = found(entry_points(group=GROUP))
"""Every wire format by name."""
_SPEAKER = {kind.name: adapter for adapter in ADAPTERS.values() for kind in adapter.kinds}
KINDS: dict[str, Kind] = {kind.name: kind for adapter in ADAPTERS.values() for kind in adapter.kinds}
_ALIASES = {alias: kind for kind in KINDS.values() for alias in (kind.name, *kind.aliases)}


def kind_of(name: str) -> Kind:
    """The kind called `name` or by one of its aliases. Raises LookupError naming those there are."""
    try:
        return _ALIASES[name.strip().lower()]
    except KeyError:
        known = ", ".join(sorted(KINDS))
        raise LookupError(f"There is no kind of inference server called {name!r}. Known: {known}.") from None


def adapter_for(kind: Kind) -> Adapter:
    """The adapter that speaks the wire format of `kind`."""
    return _SPEAKER[kind.name]


def parser_for(api: str, provider: str) -> Parser | None:
    """A parser for answers of the route called `api` of `provider`, as recordings name them; None if there is none.

    Routes of one name differ from server to server: the provider's own format comes first, then one whose kinds
    share a word of their names with it, then the first that knows such a route.
    """
    kind = _ALIASES.get(provider.strip().lower(), GENERIC)
    able = [adapter for adapter in ADAPTERS.values() if api in adapter.parsers]
    if not able:
        return None
    best = max(able, key=lambda adapter: (adapter is _SPEAKER[kind.name], _likeness(adapter, provider)))
    make: Callable[[Kind], Parser] = best.parsers[api]
    return make(kind)


def _likeness(adapter: Adapter, provider: str) -> int:
    words = set(re.split(r"[-_. ]", provider.lower()))
    own = {word for kind in adapter.kinds for name in (kind.name, *kind.aliases) for word in name.split("-")}
    return len(words & own)

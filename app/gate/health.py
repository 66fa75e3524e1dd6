"""Which servers are left alone for a while, learnt from every call of this process. A breaker for each server."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from app.catalog.selectors import Target
from app.common.errors import PartFailed
from app.common.meters import CIRCUIT
from inference_client.breaker import Breaker, State
from inference_client.errors import InferenceError, Unsupported

_breakers: dict[tuple[str, str], Breaker] = {}
_lock = threading.Lock()
"""Embeddings may run on another thread's loop; a breaker is not made for two at once."""


class ServerResting(PartFailed):
    """No chat server for this call may be asked now; it names them and says when the next try is."""


_REFUSALS: Mapping[str, tuple[str, str, type[PartFailed]]] = {
    "chat": ("chat server", "chat_server_failed", ServerResting),
    "embedding": ("embedder", "embedder_unavailable", PartFailed),
    "rerank": ("reranker", "part_failed", PartFailed),
}
"""By purpose: the part's name, the code, the class."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a server stands now."""

    state: State
    wait_s: float
    """Until it is tried again; 0 unless it is left alone."""


def health_of(target: Target) -> Health:
    """Looks without asking to pass: a trial call is not used up by it."""
    with _lock:
        breaker, now = _breaker(target), time.monotonic()
        return Health(breaker.state(now), breaker.wait_s(now))


def admits(target: Target) -> bool:
    """Whether a call may be sent now. Of a server that failed and had its pause, one call finds out."""
    with _lock:
        return _breaker(target).admits(time.monotonic())


def succeeded(target: Target) -> None:
    """A call brought something."""
    with _lock:
        _breaker(target).succeeded()


def failed(target: Target, error: InferenceError) -> None:
    """A call ended with `error`. What was never sent for its form says nothing about the server."""
    if not isinstance(error, Unsupported):
        with _lock:
            _breaker(target).failed(error, time.monotonic())


def undecided(target: Target) -> None:
    """A call is over. One that told nothing, because its reader left, leaves the trial to the next."""
    with _lock:
        _breaker(target).undecided()


def resting(targets: Sequence[Target]) -> PartFailed:
    """The refusal when every server that could serve is left alone: which they are, and when one is tried again."""
    part, code, kind = _REFUSALS[targets[0].purpose]
    soonest = max(1, math.ceil(min(health_of(target).wait_s for target in targets)))
    servers = list(dict.fromkeys(target.backend_name for target in targets))
    error = kind(
        part,
        f"{', '.join(servers)} ({part}) failed several times just now and is left alone; the next try is in "
        f"{soonest} s. Nothing was charged.",
        retry_after=soonest,
        code=code,
    )
    error.detail |= {"servers": servers, "state": health_of(targets[0]).state}
    return error


def circuits_measure() -> None:
    """Bring the figures of all circuits up to date."""
    with _lock:
        now = time.monotonic()
        states = {name: breaker.state(now) for (name, _), breaker in _breakers.items()}
    CIRCUIT.clear()
    for name, state in states.items():
        for each in get_args(State):
            CIRCUIT.labels(name, each).set(each == state)


def health_forget() -> None:
    """Forget what was learnt."""
    with _lock:
        _breakers.clear()


def _breaker(target: Target) -> Breaker:
    # A server that moved is another one.
    return _breakers.setdefault((target.backend_name, target.base_url), Breaker())

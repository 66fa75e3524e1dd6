"""Servers: where and how one is called, and what it says of itself.

Like all values of this library these are frozen, and `None` means "not told", which is never the same as 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inference_client.types import JsonObject

ModelStatus: TypeAlias = Literal["loaded", "loading", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """All in seconds."""

    connect: float = 5.0
    first_token: float = 120.0
    """From sending until the first token; comments a server sends to keep the line open do not count."""
    idle: float = 60.0
    """Between two reads that bring anything, after the first token."""
    total: float = 900.0
    grace: float = 2.0
    """How long to wait for the usage block after the finish reason."""
    drain: float = 30.0
    """How long to read on for the usage block when the reader left and leaving does not stop the bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where and how to call: `kind` is a name of `adapters.kinds.KINDS` or one of its aliases."""

    kind: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    abort_stops_billing: bool = True
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeouts: Timeouts = Timeouts()
    options: JsonObject = field(default_factory=dict)
    """What its kind wants to know beside (`Kind.options` has the names); `models` holds the same by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model a server offers; sizes in tokens, None where the server does not tell."""

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    owner: str | None = None
    quantisation: str | None = None
    """In the server's own word, such as `Q4_K_M` or `float16`."""
    status: ModelStatus | None = None
    """absent: not in memory, so the first call waits until it is; None where the server does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a probe learnt, without costing tokens."""

    base_url: str
    kind: str | None
    reachable: bool
    healthy: bool | None = None
    """None where the server has no health route."""
    version: str | None = None
    models: tuple[ModelFacts, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Load figures by the names of `metrics.py`, empty where the server shows none."""
    counts_tokens: bool = False
    key_refused: bool = False
    problem: str | None = None
    """One sentence on what is wrong and what to do; None when nothing is."""

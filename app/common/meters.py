"""What this process counts of its own work, for Prometheus. Labels are bounded: never a person, a key or an id.

Each process answers for itself and for what it did since it began; what the database knows is read when asked for, in
`app.api.metrics`. Names follow Prometheus' habits: a unit as suffix, `_total` on counters.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TOKEN_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2)

REQUESTS = Counter(
    "tessera_http_requests", "Requests answered, by class of route.", ["route", "status"], registry=REGISTRY
)
REQUEST_SECONDS = Histogram(
    "tessera_http_request_seconds",
    "From the request to the end of its answer, streams included.",
    ["route"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
FIRST_TOKEN = Histogram(
    "tessera_time_to_first_token_seconds",
    "From sending a call to its first token.",
    ["model"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
PER_TOKEN = Histogram(
    "tessera_time_per_output_token_seconds",
    "Mean time between two output tokens of a call, after the first.",
    ["model"],
    buckets=_TOKEN_SECONDS,
    registry=REGISTRY,
)
CALL_SECONDS = Histogram(
    "tessera_model_call_seconds",
    "From sending a call to its end.",
    ["model", "operation", "outcome"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
QUEUE_SECONDS = Histogram(
    "tessera_model_queue_seconds",
    "Wait in our own line before a call was sent.",
    ["model"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
TOKENS = Counter(
    "tessera_tokens", "Tokens of calls, in disjoint kinds.", ["model", "operation", "kind"], registry=REGISTRY
)
CALLS_ESTIMATED = Counter(
    "tessera_model_calls_estimated",
    "Calls whose tokens the server did not tell.",
    ["model", "reason"],
    registry=REGISTRY,
)
LOOP_LAG = Gauge(
    "tessera_event_loop_lag_seconds",
    "How much later than asked the event loop came back, the worst of the last ten seconds.",
    registry=REGISTRY,
)
DATABASE_CALLS = Gauge(
    "tessera_database_calls",
    "Calls from async code that a database thread runs, or that wait for one.",
    registry=REGISTRY,
)
CIRCUIT = Gauge(
    "tessera_circuit_state",
    "1 for the state that a server's circuit breaker is in.",
    ["server", "state"],
    registry=REGISTRY,
)

_ROUTES = frozenset(
    {"api", "admin", "accounts", "dashboard", "static", "healthz", "readyz", "metrics", "documents"}
)


def route_class(path: str) -> str:
    """The class of a page or of a route of the CRUD tier: its first part, where that is one of ours."""
    first = path.strip("/").partition("/")[0]
    return first if first in _ROUTES else "page"


def request_counted(route: str, status: int, seconds: float) -> None:
    """Count an answered request."""
    _requests(route, status).inc()
    _request_seconds(route).observe(seconds)


@cache
def _requests(route: str, status: int) -> Counter:
    return REQUESTS.labels(route, str(status))


@cache
def _request_seconds(route: str) -> Histogram:
    return REQUEST_SECONDS.labels(route)


def database_call() -> AbstractContextManager[object]:
    """Counts a call to the database while it runs or waits."""
    return DATABASE_CALLS.track_inprogress()


class LagMeter:
    """The worst lateness of the event loop within the last windows. Asked every `EVERY_SECONDS`."""

    EVERY_SECONDS = 0.5
    _KEPT = 20

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._late: list[float] = []
        self._asked = clock()

    def ask(self) -> None:
        """Going to sleep now."""
        self._asked = self._clock()

    def back(self) -> float:
        """Awake again; the worst of the last ten seconds."""
        late = max(0.0, self._clock() - self._asked - self.EVERY_SECONDS)
        self._late = [*self._late[-(self._KEPT - 1) :], late]
        worst = max(self._late)
        LOOP_LAG.set(worst)
        return worst

"""How many calls a deployment gets at once, and in which order the others wait: in turn over teams, then people."""

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from django.conf import settings

from app.billing.types import Payer
from app.catalog.selectors import Target
from app.common.aio import PerLoop
from app.common.errors import Busy
from inference_client.errors import Busy as LineTooLong
from inference_client.fair_queue import Lane
from inference_client.limiter import Limiter

_limiters: PerLoop[dict[UUID, tuple[int, Limiter]]] = PerLoop(dict)
_outstanding: Counter[UUID] = Counter()
_counting = threading.Lock()
"""Routing reads the load from other threads, where no event loop is to be asked."""

Waited = Callable[[float], None]
InLine = Callable[[bool], None]
"""Told True when a call begins to wait in line, and False when its turn has come."""


def limiter_of(target: Target) -> Limiter:
    """This loop's limiter of a deployment, as large as its row says now."""
    known = _limiters()
    slots, found = known.get(target.deployment_id, (target.slots, None))
    if found is None:
        found = Limiter(target.slots)
    elif slots != target.slots:
        found.resize(target.slots)
    known[target.deployment_id] = (target.slots, found)
    return found


def outstanding(deployment_id: UUID) -> int:
    """Calls of this process that run there or wait in line."""
    return _outstanding[deployment_id]


@asynccontextmanager
async def slot(
    target: Target, *, lane: Lane, payer: Payer, waited: Waited, in_line: InLine | None = None
) -> AsyncIterator[None]:
    """Hold one of the deployment's slots; `waited` is told the seconds in line, however the wait ended.

    Errors: Busy with the position and the expected wait after `QUEUE_WAIT_SECONDS`.
    """
    _count(target.deployment_id, 1)
    try:
        async with AsyncExitStack() as held:
            began = time.perf_counter()
            limiter = limiter_of(target)
            tell = in_line if in_line is not None and limiter.full(lane) else None
            if tell is not None:
                tell(True)
            try:
                await held.enter_async_context(
                    limiter.slot(
                        lane=lane,
                        team=str(payer.team_id),
                        person=str(payer.account_id or payer.key_id),
                        patience_s=settings.QUEUE_WAIT_SECONDS,
                    )
                )
            except LineTooLong as exc:
                raise _busy(target, exc) from exc
            finally:
                waited(time.perf_counter() - began)
            if tell is not None:
                tell(False)
            yield
    finally:
        _count(target.deployment_id, -1)


def _count(deployment_id: UUID, by: int) -> None:
    with _counting:
        _outstanding[deployment_id] += by


def _busy(target: Target, exc: LineTooLong) -> Busy:
    expected = None if exc.expected_s is None else round(exc.expected_s, 1)
    longest = settings.QUEUE_WAIT_SECONDS
    soon = "" if expected is None else f" The line takes about {max(1, round(expected))} s now."
    return Busy(
        f"`{target.public_name}` is busy: number {exc.position} in line, waited {longest:.0f} s.{soon} "
        "Nothing was charged; try again in a moment or choose another model.",
        detail={
            "part": {"embedding": "embedder", "rerank": "reranker"}.get(target.purpose, "chat server"),
            "position": exc.position,
            "expected_wait_s": expected,
            "slots": target.slots,
        },
        retry_after=longest if expected is None else max(1.0, expected),
    )

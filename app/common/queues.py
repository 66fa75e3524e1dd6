"""Which queues have a worker, and whether the clock runs. Both say so in Valkey every few seconds: asking is cheap."""

from collections.abc import Iterable, Mapping

from app.common.redis_door import sync_redis

EVERY_SECONDS = 5.0
_STANDS_SECONDS = 20
_CLOCK = "clock:beat"


def _key(queue: str) -> str:
    return f"queue:{queue}:worker"


def queues_claim(names: Iterable[str], worker: str) -> None:
    """A worker serves these queues now. Errors: redis_door.Unavailable."""
    pipe = sync_redis().pipeline(transaction=False)
    for name in names:
        pipe.set(_key(name), worker, ex=_STANDS_SECONDS)
    pipe.execute()


def queues_served(names: Iterable[str]) -> Mapping[str, bool]:
    """Whether each queue has a worker, as of at most twenty seconds ago. Errors: redis_door.Unavailable."""
    asked = list(names)
    found = sync_redis().mget([_key(name) for name in asked])
    return {name: worker is not None for name, worker in zip(asked, found, strict=True)}


def clock_claim() -> None:
    """The clock (Celery's beat) runs now. Errors: redis_door.Unavailable."""
    sync_redis().set(_CLOCK, 1, ex=_STANDS_SECONDS)


def clock_runs() -> bool:
    """Whether it did in the last twenty seconds. Errors: redis_door.Unavailable."""
    return bool(sync_redis().exists(_CLOCK))

"""Which queues have a worker. Each worker says so in Valkey every few seconds, so that asking costs one round trip."""

from collections.abc import Iterable, Mapping

from app.common.redis_door import sync_redis

EVERY_SECONDS = 5.0
_STANDS_SECONDS = 20


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

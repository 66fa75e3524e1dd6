"""Connections to Valkey/Redis. It carries queues, limits, stop signals and replayable events; never money."""

import asyncio
from functools import cache
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings

Unavailable = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
"""What to catch when the broker may be away."""

Stored = list[tuple[bytes, dict[bytes, bytes]]]
"""Entries of a stream as this client returns them: ids and fields as bytes."""

_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


@cache
def sync_redis() -> redis.Redis:
    """The process's synchronous client (2 s limits)."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2, protocol=2)


def async_redis() -> redis.asyncio.Redis:
    """This event loop's client. Blocking reads must stay below the 10 s socket limit."""
    loop = asyncio.get_running_loop()
    client = _by_loop.get(loop)
    if client is None:
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, socket_timeout=10, socket_connect_timeout=2, protocol=2, max_connections=500
        )
        _by_loop[loop] = client
    return client


async def redis_close() -> None:
    """Close this loop's client, at the end of a process or of a command's loop."""
    client = _by_loop.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()

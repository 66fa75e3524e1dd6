"""Connections to Valkey/Redis. It carries queues, limits, stop signals and replayable events; never money."""

from functools import cache

import redis
import redis.asyncio
from django.conf import settings
from redis.driver_info import DriverInfo

from app.common.aio import PerLoop

Unavailable = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
"""What to catch when the broker may be away."""

Stored = list[tuple[bytes, dict[bytes, bytes]]]
"""Entries of a stream as this client returns them: ids and fields as bytes."""


@cache
def sync_redis() -> redis.Redis:
    """The process's synchronous client (2 s limits)."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2, protocol=2)


def _connected() -> redis.asyncio.Redis:
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=10,
        socket_connect_timeout=2,
        protocol=2,
        max_connections=500,
        # Left out, each connection looks its own version up among the installed packages: 5 ms of the event loop.
        driver_info=DriverInfo(lib_version=redis.__version__),
    )


async_redis = PerLoop(_connected)
"""This event loop's client. Blocking reads must stay below the 10 s socket limit."""


async def redis_close() -> None:
    """Close this loop's client, at the end of a process or of a command's loop."""
    client = async_redis.pop()
    if client is not None:
        await client.aclose()

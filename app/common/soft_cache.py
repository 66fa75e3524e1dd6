"""Django's cache in Valkey, for counters against guessing. When the broker is away nothing is counted."""

import logging
from typing import Any

from django.core.cache.backends.redis import RedisCache

from app.common.redis_door import Unavailable

log = logging.getLogger(__name__)


class SoftCache(RedisCache):
    """A cache that is empty while the broker is away: a sign-in must not fail because haste cannot be counted."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        limits = {"socket_timeout": 2, "socket_connect_timeout": 2}
        super().__init__(server, params | {"KEY_PREFIX": "cache", "OPTIONS": limits})

    def add(self, *args: Any, **kwargs: Any) -> bool:
        """Store what is not there yet; True, as if it were stored, while the broker is away."""
        try:
            return super().add(*args, **kwargs)
        except Unavailable:
            log.warning("The broker does not answer: attempts to sign in are not counted.")
            return True

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """What is stored, else the default."""
        try:
            return super().get(key, default, version)
        except Unavailable:
            return default

    def set(self, *args: Any, **kwargs: Any) -> None:
        """Store, where that is possible."""
        try:
            super().set(*args, **kwargs)
        except Unavailable:
            return

    def delete(self, *args: Any, **kwargs: Any) -> bool:
        """Forget, where that is possible."""
        try:
            return super().delete(*args, **kwargs)
        except Unavailable:
            return False

    def clear(self) -> None:
        """Not here: the broker's database also holds queues and streams."""
        raise NotImplementedError("The cache shares its database with the queue; delete single keys.")

"""The cache that counts attempts to sign in: real in Valkey, and never in the way when Valkey is away."""

import pytest
import redis
from django.conf import settings

from app.common.soft_cache import SoftCache


def test_what_is_stored_is_there_for_every_process(broker: redis.Redis) -> None:
    one, two = (SoftCache(settings.REDIS_URL, {}) for _ in range(2))
    assert one.add("k", [1.5], 30)
    assert not two.add("k", [2.5], 30)
    assert two.get("k") == [1.5]
    assert broker.ttl(one.make_key("k")) in range(1, 31)
    two.delete("k")
    assert one.get("k", "gone") == "gone"


def test_without_a_broker_nothing_is_counted_and_nobody_is_kept_out() -> None:
    away = SoftCache("redis://127.0.0.1:1/0", {})
    assert away.add("k", 1, 30)
    away.set("k", 1, 30)
    assert away.get("k", "default") == "default"
    assert not away.delete("k")


def test_the_queue_is_never_emptied_through_the_cache() -> None:
    with pytest.raises(NotImplementedError):
        SoftCache(settings.REDIS_URL, {}).clear()

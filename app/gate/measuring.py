"""Counts each upstream call for Prometheus: how long, how many tokens, how it ended."""

from functools import cache

from prometheus_client import Histogram

from app.billing.types import Attempt
from app.catalog.selectors import Target
from app.common import meters

_KINDS = ("input", "cache_read", "cache_write", "output", "reasoning")


def call_measured(target: Target, attempt: Attempt) -> None:
    """Count one call. Costs some microseconds: nothing here waits."""
    model, operation = target.public_name, attempt.kind or "chat"
    if attempt.total_ms is not None:
        _call_seconds(model, operation, attempt.outcome).observe(attempt.total_ms / 1e3)
    if attempt.ttft_ms is not None:
        _first_token(model).observe(attempt.ttft_ms / 1e3)
    if attempt.itl_ms is not None:
        _per_token(model).observe(attempt.itl_ms / 1e3)
    if attempt.queue_ms is not None:
        _queue(model).observe(attempt.queue_ms / 1e3)
    for kind in _KINDS:
        if count := getattr(attempt.buckets, kind):
            meters.TOKENS.labels(model, operation, kind).inc(count)
    if attempt.estimated:
        meters.CALLS_ESTIMATED.labels(model, attempt.estimate_reason).inc()


@cache
def _call_seconds(model: str, operation: str, outcome: str) -> Histogram:
    return meters.CALL_SECONDS.labels(model, operation, outcome)


@cache
def _first_token(model: str) -> Histogram:
    return meters.FIRST_TOKEN.labels(model)


@cache
def _per_token(model: str) -> Histogram:
    return meters.PER_TOKEN.labels(model)


@cache
def _queue(model: str) -> Histogram:
    return meters.QUEUE_SECONDS.labels(model)

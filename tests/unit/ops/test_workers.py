"""Which workers let others go first."""

import os
from types import SimpleNamespace

import pytest
from celery.signals import celeryd_after_setup

import app.celery  # noqa: F401 - it listens


@pytest.mark.parametrize(
    ("queues", "yields"),
    [
        (("ingest", "ingest.small"), True),
        (("ingest.small",), True),
        (("default",), False),
        (("default", "ingest"), False),
    ],
)
def test_a_worker_that_only_reads_documents_yields(
    monkeypatch: pytest.MonkeyPatch, queues: tuple[str, ...], yields: bool
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(os, "nice", steps.append)
    consumed = SimpleNamespace(consume_from=dict.fromkeys(queues))
    worker = SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=consumed)))
    celeryd_after_setup.send(sender="worker", instance=worker)
    assert (sum(steps) > 0) is yields

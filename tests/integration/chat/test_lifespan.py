"""A web process that cannot do its work says so in one sentence and does not begin to serve."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import ProgrammingError

from app.api.stream import lifespan as module
from app.common.errors import PartFailed
from inference_client.tokens import TokenizerFileError

pytestmark = pytest.mark.django_db


def started() -> list[dict[str, Any]]:
    """What the process said while it began; it is told to stop as soon as it serves."""
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup" if not sent else "lifespan.shutdown"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def story() -> None:
        await module.lifespan(receive, send)
        # Nothing of it is left behind.
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task() and not t.done()] == []

    async_to_sync(story)()
    return sent


@pytest.fixture(autouse=True)
def _own_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_drain_on_sigterm", lambda here: None)


def failing(error: Exception) -> Any:
    def fail(*_: Any) -> Any:
        raise error

    return fail


def test_it_begins_and_ends() -> None:
    assert [m["type"] for m in started()] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_missing_tokenizer_file_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "counter", failing(TokenizerFileError("The tokenizer file is missing.")))
    assert started() == [{"type": "lifespan.startup.failed", "message": "The tokenizer file is missing."}]


def test_a_database_that_refuses_the_role_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "_missing_migrations", failing(ProgrammingError("permission denied for table"))
    )
    (said,) = started()
    assert said["type"] == "lifespan.startup.failed"
    assert "permission denied" in said["message"]


def test_a_database_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_missing_migrations", failing(PartFailed("database", "away")))
    assert started()[0]["type"] == "lifespan.startup.complete"

"""The real servers as deployments, and helpers that run a turn from a synchronous test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from app.accounts.selectors import Caller
from app.billing.services import bootstrap_defaults
from app.chat.asking import ask_in_conversation
from app.chat.events import TurnEvent
from app.chat.models import Conversation
from app.chat.runs import Run, Runs
from app.chat.turn import take_turn
from app.chat.types import Ask
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from app.ops.servers import servers_prepare


@dataclass
class Taken:
    """A turn that ran to its end."""

    ask: Ask
    run: Run
    events: list[TurnEvent] = field(default_factory=list)

    def named(self, name: str) -> list[Any]:
        return [e.data for e in self.events if e.name == name]

    @property
    def names(self) -> list[str]:
        return [e.name for e in self.events]


@pytest.fixture
def servers(db: None) -> None:
    """Deployments of the real chat and embedding servers, with prices and default budgets."""
    bootstrap_defaults()
    servers_prepare()


@pytest.fixture
def conversation(caller: Caller, servers: None) -> Conversation:
    return Conversation.objects.create(team_id=caller.default_team_id, owner_id=caller.user_id)


@pytest.fixture
def gather(caller: Caller, conversation: Conversation) -> Callable[..., Ask]:
    """Gathers an ask in the conversation."""

    def make(text: str, **wishes: Any) -> Ask:
        return ask_in_conversation(
            caller=caller,
            conversation_id=conversation.id,
            turn_id=uuid7(),
            request_id="test",
            text=text,
            **wishes,
        )

    return make


def take(ask: Ask, *, each: Callable[[Run, TurnEvent], None] | None = None) -> Taken:
    """Run a turn to its end on an event loop of its own; `each` sees every event as a reader would."""

    async def story() -> Taken:
        run = Runs().start(ask.turn_id, lambda run: take_turn(ask, run), replayable=False)
        taken = Taken(ask, run)
        async for batch in run.log.follow():
            for event in batch:
                taken.events.append(event)
                if each is not None:
                    each(run, event)
        assert run.task is not None
        await run.task
        await client_close()
        await redis_close()
        return taken

    return async_to_sync(story)()

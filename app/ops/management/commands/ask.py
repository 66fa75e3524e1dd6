"""`manage.py ask "question" [--collection NAME]`: one turn in the terminal, on the same path as the chat."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from app.accounts.selectors import caller_by_user
from app.chat.asking import ask_in_conversation
from app.chat.events import TurnEvent
from app.chat.heartbeat import beat
from app.chat.models import Conversation
from app.chat.runs import runs
from app.chat.turn import take_turn
from app.chat.types import Ask
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.common.told import ToldCommand
from app.gate.clients import client_close
from app.ops.told import person_named
from retrieval.selectors import collection_named, collections_readable
from retrieval.types import Viewer


class Command(ToldCommand):
    """Streams the answer, then names its sources and its price."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question")
        parser.add_argument(
            "--collection", action="append", default=[], metavar="NAME", help="search only this one"
        )
        parser.add_argument("--model", help="a public model name; default: the installation's first")
        parser.add_argument(
            "--as", dest="email", help="the person who asks; default: the first administrator"
        )

    def act(self, **options: Any) -> None:
        if failed := asyncio.run(self._run(_gather(options))):
            raise CommandError(failed)

    async def _run(self, ask: Ask) -> str | None:
        here = runs()
        # Without a pulse the sweeper would take this process for dead and end the turn.
        pulse = asyncio.ensure_future(beat(here))
        run = here.start(ask.turn_id, lambda run: take_turn(ask, run), replayable=await here.store.probe())
        sources: list[dict[str, Any]] = []
        try:
            async for batch in run.log.follow():
                for event in batch:
                    if event.name == "sources":
                        sources = event.data["items"]
                    self._show(event, sources)
            if run.task is not None:
                await run.task
        finally:
            pulse.cancel()
            await here.store.drained()
            await client_close()
            await redis_close()
        return run.failure.message if run.failure else None

    def _show(self, event: TurnEvent, sources: list[dict[str, Any]]) -> None:
        """Text to standard output, everything about it to standard error."""
        match event.name:
            case "turn":
                for notice in event.data["notices"]:
                    self.stderr.write(f"note: {notice['message']}")
            case "notice":
                self.stderr.write(f"note: {event.data['message']}")
            case "quotes":
                for quote in event.data["items"]:
                    self.stdout.write(f"  “{quote['text']}” [{quote['n']}]")
                self.stdout.write("")
            case "delta":
                sys.stdout.write(event.data.get("text", ""))
                sys.stdout.flush()
            case "usage":
                self._after(event.data, sources)
            case "done" if event.data["finish_reason"] == "length":
                self.stderr.write("note: The answer is cut off: it reached the output limit of the model.")

    def _after(self, usage: Mapping[str, Any], sources: list[dict[str, Any]]) -> None:
        self.stdout.write("\n")
        for source in sources:
            self.stdout.write(_named(source))
        price = usage["price"]
        cost = f"{price['amount']} {price['currency']}" if price else "price unknown"
        mark = "≈ " if usage["estimated"] else ""
        self.stdout.write(f"{mark}{usage['input_tokens']} tokens in, {usage['output_tokens']} out, {cost}")


def _named(source: Mapping[str, Any]) -> str:
    """A source in a line: number, document, and where in it."""
    page = f", page {source['page']}" if source["page"] else ""
    # Behind the headings may stand the header of a table.
    section = source["heading"].partition("\n")[0]
    return f"[{source['n']}] {source['title']}{page}{f', {section}' if section else ''}"


def _gather(options: dict[str, Any]) -> Ask:
    caller = caller_by_user(person_named(options["email"], to="ask"))
    viewer = Viewer(caller.principals)
    chosen = [collection_named(viewer, name) for name in options["collection"]] or list(
        collections_readable(viewer)
    )
    conversation = Conversation.objects.create(
        team_id=caller.default_team_id, owner_id=caller.user_id, title=options["question"][:60]
    )
    return ask_in_conversation(
        caller=caller,
        conversation_id=conversation.id,
        turn_id=uuid7(),
        request_id=str(uuid7()),
        text=options["question"],
        model=options["model"],
        collections=[c.id for c in chosen],
    )

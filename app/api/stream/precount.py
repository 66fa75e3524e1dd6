"""`POST precount/`: what a message would take and cost, before anything is sent. Never embeds, never searches."""

from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller
from app.api.stream.http import Request, Responder, as_uuid, typed
from app.api.stream.turns import ids_of, parent_of
from app.chat.asking import ask_draft
from app.chat.planning import counted
from app.chat.quoting import verdict_of
from app.chat.types import Ask
from app.common.db import run_db
from app.common.models import uuid7


async def precount_post(request: Request, respond: Responder, caller: Caller) -> None:
    """Tokens by part, price range, what remains of each limit, and whether it would be admitted."""
    body = await request.json()
    caller.require_scope("chat")
    ask, estimate = await counted(await run_db(_draft, caller, body, request.id))
    await respond.json(200, await run_db(verdict_of, ask, estimate))


def _draft(caller: Caller, body: dict[str, Any], request_id: str) -> Ask:
    collections = typed(body, "collections", list, "a list of collection ids")
    conversation = body.get("conversation")
    team, assistant = body.get("team"), body.get("assistant")
    return ask_draft(
        caller=caller,
        conversation_id=as_uuid(conversation, "conversation") if conversation else None,
        team_id=as_uuid(team, "team") if team else None,
        turn_id=uuid7(),
        request_id=request_id,
        text=typed(body, "text", str, "the draft as text") or "",
        model=typed(body, "model", str, "a model's name"),
        collections=_ids(collections),
        attachments=ids_of(body, "attachments"),
        parent=parent_of(body),
        assistant_id=as_uuid(assistant, "assistant") if assistant else None,
    )


def _ids(values: list[Any] | None) -> list[UUID] | None:
    return None if values is None else [as_uuid(value, "collections") for value in values]

"""Titles of conversations: the beginning of the first question, and a better one where a model is set for it.

The title is a call like any other: held, booked as kind `title`, and only to a deployment that is cleared for what the
conversation holds. Nothing waits for it, and where it fails the beginning of the question stays.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from uuid import UUID

from django.conf import settings

from app.catalog.models import Deployment
from app.catalog.selectors import Target, targets
from app.chat.models import Conversation
from app.chat.planning import payer_of
from app.chat.types import Ask
from app.common.db import run_db
from app.common.errors import AppError
from app.common.models import uuid7
from app.gate.counting import text_facts
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.types import Message, TextDelta

log = logging.getLogger(__name__)

CUT_CHARS = 60
_QUESTION_CHARS = 1_500
_OUTPUT_TOKENS = 24
_MARKS = 32
"""Tokens of a template around two short messages, at most."""
_HOLD_SECONDS = 120
_INSTRUCTIONS = (
    "Give the following question a title of two to six words in its own language. Answer with the title alone, "
    "without quotation marks and without a full stop."
)
_making: set[asyncio.Task[None]] = set()
"""Titles that are being made: the event loop itself would forget them."""


def title_cut(question: str) -> str:
    """How a question begins, on one line: whole words, and a sign that there is more."""
    line = " ".join(question.split())
    if len(line) <= CUT_CHARS:
        return line
    words = line[:CUT_CHARS].rpartition(" ")[0]
    # A language without spaces, or one long word, is cut where it is.
    return (words if len(words) > CUT_CHARS // 2 else line[: CUT_CHARS - 1]) + "…"


def title_begin(ask: Ask) -> None:
    """Have a conversation's first question given a title, where a model is set for that."""
    if settings.TITLE_MODEL and ask.conversation_id is not None and ask.parent_id is None:
        task = asyncio.get_running_loop().create_task(title_make(ask), name=f"title {ask.conversation_id}")
        _making.add(task)
        task.add_done_callback(_making.discard)


async def title_make(ask: Ask) -> None:
    """Ask for a title, book it, and keep it unless somebody gave the conversation another one meanwhile."""
    assert ask.conversation_id is not None
    try:
        found = await run_db(_cleared, ask)
        if found:
            title = title_clean(await _asked(ask, found))
            if title:
                await run_db(_title_set, ask.conversation_id, title_cut(ask.question), title)
    except (AppError, InferenceError) as exc:
        log.info("A conversation keeps the beginning of its question as its title: %s.", type(exc).__name__)


def _cleared(ask: Ask) -> tuple[Target, ...]:
    """Deployments of the title model that may see this; none when the conversation has another title already."""
    assert ask.conversation_id is not None
    if not Conversation.objects.filter(id=ask.conversation_id, title=title_cut(ask.question)).exists():
        return ()
    return tuple(
        target
        for target in targets(Deployment.Purpose.CHAT.value)
        if target.public_name == settings.TITLE_MODEL and target.cleared_for(ask.level)
    )


async def _asked(ask: Ask, found: Sequence[Target]) -> str:
    question = ask.question[:_QUESTION_CHARS]
    count = (
        text_facts(found[0].tokenizer, question).tokens + text_facts(found[0].tokenizer, _INSTRUCTIONS).tokens
    )
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=payer_of(ask),
        kind="title",
        targets=tuple(found),
        input_tokens=2 * count + _MARKS,
        output_tokens=_OUTPUT_TOKENS,
        ttl_seconds=_HOLD_SECONDS,
        request_id=ask.request_id,
    )
    admission = await reserve(plan)
    text: list[str] = []
    try:
        messages = (Message(role="system", content=_INSTRUCTIONS), Message(role="user", content=question))
        async with aclosing(admission.infer(messages, temperature=0.0)) as events:
            async for batch in events:
                text += [event.text for event in batch if isinstance(event, TextDelta)]
    finally:
        await admission.end()
    return "".join(text)


def title_clean(text: str) -> str:
    """The first line of what a model said, as a title; "" when nothing of use is in it."""
    lines = [line for line in (line.strip().strip("\"'“”«»*#` ") for line in text.splitlines()) if line]
    return lines[0].rstrip(".").strip()[:CUT_CHARS] if lines else ""


def _title_set(conversation_id: UUID, cut: str, title: str) -> None:
    # A title that a person gave in the meantime stands.
    Conversation.objects.filter(id=conversation_id, title=cut).update(title=title)

"""What a reader is shown of a turn: the bodies of its events, built from the values of the steps. No IO."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings

from app.billing.types import Settled
from app.chat.events import TurnEvent
from app.chat.precount import Estimate
from app.chat.types import Ask, ClosedTurn, Ending, Failure
from app.common.errors import AppError
from app.common.money import money
from app.gate.admission import Admission
from app.gate.attempts import INPUT_SHORT
from inference_client.errors import ContextTooLong, InferenceError, InvalidRequest, Throttled, Unsupported
from inference_client.types import ToolCallDelta
from retrieval.attribution import matches
from retrieval.citations import citations
from retrieval.errors import RetrievalError
from retrieval.types import Passage, Prompt, Quote

if TYPE_CHECKING:
    from app.chat.turn import Turn

NO_MODEL: Mapping[str, Any] = {
    "code": "no_model_answered",
    "message": "No model answered. These are the passages found for your question; your question is kept.",
}
NOT_ANY_MORE = Failure(
    "not_authenticated",
    "This answer was ended: the key or account it was written for is no longer valid, or left the team that pays. What "
    "was written is kept.",
    401,
    False,
)
MISTAKE = Failure(
    "internal",
    "Tessera made a mistake while answering. What was written is kept, your question too; try again, and tell an "
    "administrator the request id if it happens again.",
    500,
    False,
)
_DEMONSTRATION: Mapping[str, Any] = {
    "code": "demonstration_model",
    "message": "A tiny demonstration model answers: it is often wrong. "
    "Quotes and sources come from your documents. Connect a real model with INFERENCE_URL or `manage.py up --model`.",
}
_NOT_REPLAYABLE: Mapping[str, Any] = {
    "code": "not_resumable",
    "message": "The broker does not answer: this answer cannot be followed from another page.",
}


def turn(ask: Ask, estimate: Estimate, admission: Admission, *, replayable: bool) -> dict[str, Any]:
    """Body of the `turn` event: who pays, what was counted, and what the reader should know beforehand."""
    notices: list[Mapping[str, Any]] = [*before(ask), *estimate.notices]
    notices += [
        {"code": note.code, "message": note.message, "max_output_tokens": admission.output_tokens}
        for note in admission.held.notes
    ]
    if ask.targets[0].is_demonstration:
        notices.append(_DEMONSTRATION)
    if ask.keep and not replayable:
        notices.append(_NOT_REPLAYABLE)
    return {
        "turn_id": str(ask.turn_id),
        "conversation_id": _text(ask.conversation_id),
        "parent_id": _text(ask.parent_id),
        "model": ask.model,
        "payer": {"team_id": str(ask.team_id), "name": ask.team_name},
        "attachments": [item.public() for item in ask.attached.placed],
        "estimate": {**estimate.public(), "held": money(admission.held.price, settings.CURRENCY)},
        "notices": notices,
    }


def before(ask: Ask) -> tuple[Mapping[str, Any], ...]:
    """What is known before anything is counted."""
    return (*(ask.route.notices if ask.route else ()), *ask.notices)


def source(number: int, passage: Passage) -> dict[str, Any]:
    """One item of the `sources` event; offsets are characters in the whole text of the document."""
    return {
        "n": number,
        "passage_id": str(passage.id),
        "document_id": str(passage.document_id),
        "document_version": passage.document_version,
        "collection_id": str(passage.collection_id),
        "title": passage.title,
        "page": passage.page,
        "page_end": passage.page_end,
        "heading": passage.heading,
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "score": round(passage.score, 4),
        "warnings": list(passage.warnings),
    }


_WHOLE_CHARS = 24_000
"""Of all files that go whole together, in one event: a reader sees how each part begins and opens the file for more."""


def sources(passages: Sequence[Passage], *, whole: int) -> list[dict[str, Any]]:
    """Items of the `sources` event; the first `whole` are parts of attached files, cut so that no event is too long."""
    each = max(80, _WHOLE_CHARS // max(1, whole))
    items = [source(n, passage) for n, passage in enumerate(passages, 1)]
    return [item | {"text": item["text"][:each], "whole": True} for item in items[:whole]] + items[whole:]


def retrieval_notices(ask: Ask, prompt: Prompt) -> Iterable[dict[str, Any]]:
    """What search did not find, and what stitching left out."""
    if not prompt.passages:
        files = ("the attached files",) if ask.attached.searched else ()
        where = ", ".join((*ask.collection_names, *files)) or "the chosen collections"
        yield {"code": "nothing_found", "message": f"Nothing found in {where} for this question."}
    if prompt.left_out:
        yield {
            "code": "left_out",
            "message": f"Left out to fit: {'; '.join(prompt.left_out)}.",
            "items": list(prompt.left_out),
        }


def unread(documents: int) -> dict[str, Any]:
    """What search could not see yet, so that nobody takes its silence for the documents'."""
    message = (
        "A document in there is still being read; what it says cannot be found yet."
        if documents == 1
        else f"{documents} documents in there are still being read; what they say cannot be found yet."
    )
    return {"code": "still_reading", "message": message, "documents": documents}


def quotes(found: Iterable[Quote], passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Items of the `quotes` event; each names its collection, so that a replay can ask for the right to it again."""
    return [
        {
            "n": quote.number,
            "text": quote.text,
            "score": round(quote.score, 4),
            "collection_id": str(passages[quote.number - 1].collection_id),
        }
        for quote in found
    ]


def matched(text: str, passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Items of the `matches` event; each names its collection, as quotes do."""
    return [
        {
            "n": match.number,
            "text": match.text,
            "score": match.score,
            "collection_id": str(passages[match.number - 1].collection_id),
        }
        for match in matches(text, [passage.text for passage in passages])
    ]


def tool_piece(event: ToolCallDelta) -> dict[str, Any]:
    """A piece of a tool call as the `delta` event carries it."""
    return {"index": event.index, "id": event.id, "name": event.name, "arguments": event.arguments}


def short_notices(admission: Admission) -> Iterable[dict[str, Any]]:
    """Notices of a server that read less than was sent, by its own count."""
    for attempt in admission.attempts:
        if INPUT_SHORT in attempt.flags:
            sent, read = attempt.local_input_tokens, attempt.buckets.input_total
            yield {
                "code": "prompt_cut",
                "message": f"The model's server read {read:,} of about {sent:,} tokens that were sent: it seems to cut "
                "long prompts without saying so, and the answer may miss the rest. Shorten the question, or choose "
                "another model; administrators see this too.",
                "sent": sent,
                "read": read,
            }


def usage(settled: Settled | None, admission: Admission) -> dict[str, Any]:
    """Body of the `usage` event. Without a settlement (the database stayed away) the figures are unknown, not zero."""
    if settled is None:
        return {"input_tokens": None, "output_tokens": None, "estimated": None, "price": None}
    chat = [a.buckets for a in admission.attempts if a.kind in {None, admission.plan.kind}]
    return {
        "input_tokens": settled.input_tokens,
        "output_tokens": settled.output_tokens,
        "cached_input_tokens": sum(b.cache_read for b in chat),
        "reasoning_tokens": sum(b.reasoning for b in chat),
        "estimated": settled.estimated,
        "price": money(settled.price, settled.currency),
    }


def failure(exc: AppError | InferenceError | RetrievalError) -> Failure:
    """Any refusal or failure as the reader is told it: the failing part by name, and what to do."""
    if isinstance(exc, AppError):
        return Failure(exc.name, exc.message, exc.status, exc.retryable, exc.detail, exc.retry_after)
    if isinstance(exc, ContextTooLong):
        numbers = {"input_tokens": exc.input_tokens, "context_window": exc.context_window}
        return Failure("context_length_exceeded", exc.message, 422, False, numbers)
    if isinstance(exc, InvalidRequest | Unsupported):
        cause = {"part": "chat server", "cause": type(exc).__name__}
        return Failure("invalid", exc.message, 422, False, cause)
    if isinstance(exc, InferenceError):
        code = "rate_limited_upstream" if isinstance(exc, Throttled) else "chat_server_failed"
        return Failure(
            code,
            exc.message,
            503,
            exc.retryable,
            {"part": "chat server", "cause": type(exc).__name__},
            exc.retry_after,
        )
    return Failure(exc.code, exc.message, exc.status, exc.status >= 500, dict(exc.detail))


def end(ending: Ending) -> tuple[str, dict[str, Any]]:
    """Name and body of the end event."""
    if ending.error is None:
        return "done", {"finish_reason": ending.finish_reason}
    return "error", ending.error.as_event()


def closed_turn(taken: "Turn", usage_shown: Mapping[str, Any], figures: Mapping[str, Any]) -> ClosedTurn:
    """What is stored of a turn that ended."""
    # Without a search a bracketed number is the model's own text, not a mark.
    numbered = taken.ask.collections or taken.passages
    marks = citations(taken.log.text, len(taken.passages)) if numbered else None
    assert taken.admission is not None
    notices = [notice for event in taken.log.events for notice in _notices_in(event)]
    return ClosedTurn(
        turn_id=taken.ask.turn_id,
        conversation_id=taken.ask.conversation_id,
        team_id=taken.ask.team_id,
        ending=taken.ending,
        answer=taken.log.text if marks is None else marks.text,
        reasoning=taken.log.reasoning,
        quotes=quotes(taken.quotes, taken.passages),
        matches=taken.matches,
        notices=notices,
        usage=usage_shown,
        timing=figures,
        deployment_id=taken.admission.target.deployment_id,
        model=taken.admission.target.public_name,
        passages=taken.passages,
        whole=len(taken.ask.attached.passages),
        cited=frozenset(marks.cited) if marks else frozenset(),
    )


def _notices_in(event: TurnEvent) -> list[dict[str, Any]]:
    if event.name == "notice":
        return [dict(event.data)]
    return [dict(notice) for notice in event.data["notices"]] if event.name == "turn" else []


def _text(value: object) -> str | None:
    return None if value is None else str(value)

"""How many tokens a turn will take, before anything is sent. Pure: counts, adds, and decides what fits.

The same function serves the composer's meter, the reservation and the stitching budget, so that they never disagree.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.common.errors import AppError
from inference_client.learned import MESSAGE_OVERHEAD, REPLY_OVERHEAD

DEFAULT_OUTPUT_TOKENS = 512
SMALLEST_OUTPUT_TOKENS = 64
DEFAULT_PASSAGE_BUDGET = 1600
PASSAGE_SHARE = 0.6
"""At most this share of the free window goes to passages, so that history is not squeezed out."""
WINDOW_SHARE = 0.25
"""And at most this share of the whole window: a small window mostly belongs to a small server, slow to read much."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Pair:
    """A past question of this branch with its answer."""

    question: str
    answer: str


class ContextTooLong(AppError):
    """The question does not fit the model's context window."""

    code, status = "context_length_exceeded", 422


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far a count may be from the server's own."""

    kind: str
    """exact or estimated"""
    error_pct: int

    @property
    def factor(self) -> float:
        """What to multiply a count by to be safe."""
        return 1 + self.error_pct / 100


def accuracy_within(error_pct: float) -> Accuracy:
    """Whole percents, upward: a band is not promised narrower than it is."""
    return Accuracy("estimated" if error_pct else "exact", math.ceil(error_pct))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Input tokens by part, and what they leave for the answer."""

    tokenizer: str
    count: Count
    """The counter itself, for the stitching that must stay inside this estimate."""
    accuracy: Accuracy
    system: int
    """Instructions, and what a `/v1` caller sends besides the question."""
    given: int = 0
    """The latter alone: the part of `system` that no stitching sees."""
    history: int
    draft: int
    retrieved_expected: int
    retrieved_max: int
    attachments: int = 0
    passages: Accuracy
    """How far the count of passages may be off: they are always counted here."""
    budget: int
    """What stitching may use, by `count`."""
    max_output_tokens: int
    history_kept: int
    """How many of the newest pairs go along."""
    counted_by: str = "tessera"
    """Or `server`, whose own count it is."""
    left_out: tuple[str, ...] = ()
    notices: tuple[dict[str, Any], ...] = ()

    @property
    def known(self) -> int:
        """All that is known before the search."""
        return self.system + self.history + self.attachments + self.draft

    @property
    def total_expected(self) -> int:
        return self.known + self.retrieved_expected

    @property
    def total_max(self) -> int:
        return self.known + self.retrieved_max

    @property
    def held_input(self) -> int:
        """What a reservation holds for input: the maximum with the counters' errors on top."""
        return math.ceil(self.known * self.accuracy.factor + self.retrieved_max * self.passages.factor - 1e-6)

    def fits(self, window: int | None) -> bool:
        """Whether all of it and the answer go into `window` tokens; an unknown window holds anything."""
        return window is None or self.held_input + self.max_output_tokens <= window

    def told(self, tokens: int, *, error_pct: float) -> "Estimate":
        """The same plan with the server's own count of all that is known; the parts share it as they did."""
        share = tokens / max(1, self.known)
        system, history, attachments = (
            math.floor(part * share) for part in (self.system, self.history, self.attachments)
        )
        return replace(
            self,
            system=system,
            history=history,
            attachments=attachments,
            draft=max(0, tokens - system - history - attachments),
            accuracy=accuracy_within(error_pct),
            counted_by="server",
        )

    def held_for(self, stitched: int) -> int:
        """The same once the prompt is built, of `stitched` tokens besides what was given and attached."""
        return math.ceil((self.given + self.attachments + stitched) * self.accuracy.factor)

    def public(self) -> dict[str, Any]:
        """As `precount/` and the `turn` event show it."""
        return {
            "tokenizer": self.tokenizer,
            "counted_by": self.counted_by,
            "accuracy": {"kind": self.accuracy.kind, "error_pct": self.accuracy.error_pct},
            "input_tokens": {
                "system": self.system,
                "history": self.history,
                "attachments": self.attachments,
                "retrieved": {"expected": self.retrieved_expected, "max": self.retrieved_max},
                "draft": self.draft,
                "total": {"expected": self.total_expected, "max": self.total_max},
            },
            "max_output_tokens": self.max_output_tokens,
            "left_out": list(self.left_out),
        }


def message_tokens(count: Count, text: str) -> int:
    """Tokens of one message with the template's marks around it."""
    return count(text) + MESSAGE_OVERHEAD


def estimate(  # noqa: PLR0913 - the parts of a prompt are what they are
    *,
    count: Count,
    tokenizer: str,
    accuracy: Accuracy,
    window: int | None,
    output_cap: int,
    output_wanted: int | None,
    system: str,
    given: int = 0,
    attachments: int = 0,
    reply: int = REPLY_OVERHEAD,
    history: Sequence[Pair],
    question: str,
    searches: bool,
    retrieved_p50: int | None = None,
) -> Estimate:
    """Plan one turn inside `window` tokens (None: unknown, then nothing is trimmed and the server decides).

    Errors: ContextTooLong with both numbers when the question alone leaves no room for an answer.
    """
    fixed = given + (message_tokens(count, system) if system else 0)
    draft = message_tokens(count, question) + reply
    output = min(output_cap, output_wanted or DEFAULT_OUTPUT_TOKENS)
    free = None if window is None else math.floor(window / accuracy.factor) - fixed - attachments - draft
    notices: list[dict[str, Any]] = []
    if free is not None:
        needed = fixed + attachments + draft
        free, output = _room_for_answer(free, output, window or 0, needed, attachments, notices)
    passages = _passage_budget(free, window) if searches else 0
    left = None if free is None else free - passages
    kept, spent = _fit_history(count, history, left)
    left_out = _left_out(len(history) - kept, notices)
    return Estimate(
        tokenizer=tokenizer,
        count=count,
        accuracy=accuracy,
        passages=accuracy,
        budget=fixed - given + spent + draft + passages - (reply - REPLY_OVERHEAD),
        system=fixed,
        given=given,
        history=spent,
        draft=draft,
        attachments=attachments,
        retrieved_expected=min(passages, retrieved_p50 if retrieved_p50 is not None else passages),
        retrieved_max=passages,
        max_output_tokens=output,
        history_kept=kept,
        left_out=left_out,
        notices=tuple(notices),
    )


def _left_out(dropped: int, notices: list[dict[str, Any]]) -> tuple[str, ...]:
    """What of the history does not fit, in words; said in a notice too."""
    if not dropped:
        return ()
    words = f"{dropped} earlier {'question' if dropped == 1 else 'questions'} with their answers"
    message = f"Left out to fit the window: {words}."
    notices.append({"code": "history_trimmed", "message": message, "pairs": dropped})
    return (words,)


def _room_for_answer(
    free: int, output: int, window: int, needed: int, attachments: int, notices: list[dict[str, Any]]
) -> tuple[int, int]:
    """(tokens left for passages and history, output cap): the cap shrinks before a question is refused."""
    if free - output >= 0:
        return free - output, output
    if free < SMALLEST_OUTPUT_TOKENS:
        along = f", {attachments} of them attached files," if attachments else ""
        raise ContextTooLong(
            f"Your question needs about {needed} tokens{along} and the model's window holds {window}, answer "
            "included. Shorten it, or choose a model with a larger window.",
            detail={"input_tokens": needed, "context_window": window, "attachments": attachments},
        )
    notices.append(
        {
            "code": "output_cap_lowered",
            "message": f"The answer is limited to {free} tokens so that your question fits the model's window.",
            "max_output_tokens": free,
        }
    )
    return 0, free


def _passage_budget(free: int | None, window: int | None) -> int:
    if free is None or window is None:
        return DEFAULT_PASSAGE_BUDGET
    return min(DEFAULT_PASSAGE_BUDGET, int(free * PASSAGE_SHARE), int(window * WINDOW_SHARE))


def _fit_history(count: Count, history: Sequence[Pair], room: int | None) -> tuple[int, int]:
    """(number of newest pairs that fit, their tokens): whole pairs only, the oldest go first."""
    kept = spent = 0
    for pair in reversed(history):
        cost = message_tokens(count, pair.question) + message_tokens(count, pair.answer)
        if room is not None and spent + cost > room:
            break
        kept, spent = kept + 1, spent + cost
    return kept, spent

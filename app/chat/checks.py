"""Named steps that look at text on its way in and out. By default each lets everything pass.

A check returns a verdict with its own name and version; the verdict is logged, the text never is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.common.errors import InvalidInput
from inference_client.types import Message

MAX_QUESTION_CHARS = 400_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found."""

    check: str
    version: str
    outcome: Literal["pass", "redact", "refuse", "flag"] = "pass"
    code: str = ""


def check_length(question: str) -> None:
    """Refuse what is too long to be worth counting. Errors: InvalidInput naming the field."""
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInput(
            f"The question has {len(question):,} characters; {MAX_QUESTION_CHARS:,} is the most. "
            "Put long text into a document and ask about it.",
            detail={"fields": {"text": ["too long"]}},
        )


def check_input(question: str) -> tuple[Verdict, ...]:
    """Refuse what is no question. Errors: InvalidInput naming the field."""
    if not question.strip():
        raise InvalidInput(
            "The question is empty. Write one and send again.", detail={"fields": {"text": ["empty"]}}
        )
    if "\x00" in question:
        raise InvalidInput(
            "The question holds a NUL character, which no text has. Remove it and send again.",
            detail={"fields": {"text": ["NUL character"]}},
        )
    return (Verdict("question", "1"),)


def redact(
    messages: Sequence[Message], *, leaves_premises: bool
) -> tuple[tuple[Message, ...], tuple[Verdict, ...]]:
    """What may leave for the chosen deployment: the messages as they go out, byte for byte."""
    return tuple(messages), (Verdict("redaction", "1", code="leaves_premises" if leaves_premises else ""),)


def check_output(text: str) -> tuple[Verdict, ...]:
    """Look at a finished answer before it is stored."""
    return (
        Verdict(
            "answer", "1", "pass" if text.strip() else "flag", code="" if text.strip() else "empty_answer"
        ),
    )

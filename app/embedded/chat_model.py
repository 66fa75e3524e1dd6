"""Which model the packaged chat server runs."""

from dataclasses import dataclass
from pathlib import Path

from app.embedded.weights import DEMONSTRATION, DEMONSTRATION_NAME

SLOT_TOKENS = 4096
"""Context window of each slot: what a prompt and its answer may have together."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A GGUF file and the name it is served under."""

    name: str
    path: Path
    is_demonstration: bool


def demonstration(cache: Path) -> ChatModel:
    """The packaged model: tiny, quick, and bad at answering."""
    return ChatModel(name=DEMONSTRATION_NAME, path=cache / "chat" / DEMONSTRATION, is_demonstration=True)

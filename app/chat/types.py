"""The small frozen values that the steps of a turn hand each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller
from app.catalog.selectors import Target
from inference_client.types import Message


@dataclass(frozen=True, slots=True)
class Pair:
    """A past question of this branch with its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Options:
    """Sampling and format wishes of the caller, passed on as they are."""

    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    tool_choice: str | Mapping[str, Any] | None = None
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Everything a turn needs to know, gathered by a door (chat, REST, `/v1`) before it starts."""

    turn_id: UUID
    request_id: str
    caller: Caller
    team_id: UUID
    """The payer."""
    team_name: str
    targets: tuple[Target, ...]
    """Deployments that may answer, in order of preference."""
    question: str
    history: tuple[Pair, ...] = ()
    collections: tuple[UUID, ...] = ()
    """Collections to search; empty means no retrieval."""
    collection_names: tuple[str, ...] = ()
    level: str = "public"
    max_output_tokens: int | None = None
    options: Options = Options()
    conversation_id: UUID | None = None
    parent_id: UUID | None = None
    messages: tuple[Message, ...] | None = None
    """Set by `/v1`: the caller's own messages, never trimmed. `question` is then the last user text."""
    keep: bool = True
    """Whether the turn is stored with its text (a conversation) or only booked (`/v1` without documents)."""

    @property
    def model(self) -> str:
        return self.targets[0].public_name

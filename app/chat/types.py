"""The small frozen values that the steps of a turn hand each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller
from app.billing.types import CallKind
from app.catalog.selectors import Target
from app.chat.attachments import NOTHING, Attached, Attachment
from app.chat.precount import Pair
from app.common.errors import AppError
from app.gate.routing import Routed
from inference_client.types import Message
from retrieval.types import Passage


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

    def as_request(self) -> dict[str, Any]:
        """The fields of a `ChatRequest` that were really asked for."""
        names = ("temperature", "top_p", "stop", "seed", "tools", "tool_choice", "response_format", "extra")
        return {name: value for name in names if (value := getattr(self, name)) not in (None, (), {})}


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
    route: Routed | None = None
    """How they were chosen."""
    question: str
    history: tuple[Pair, ...] = ()
    collections: tuple[UUID, ...] = ()
    """Collections to search; empty means no retrieval."""
    collection_names: tuple[str, ...] = ()
    instructions: str = ""
    """The prompt of the assistant that is asked; it follows our own."""
    attachments: tuple[Attachment, ...] = ()
    """Files that go along, the first attached first."""
    attachments_id: UUID | None = None
    """The conversation's own collection, where they lie; among `collections` when some of them are searched."""
    attached: Attached = NOTHING
    """What becomes of them, once it was counted."""
    notices: tuple[Mapping[str, Any], ...] = ()
    """What its reader should know beforehand."""
    level: str = "public"
    max_output_tokens: int | None = None
    embedding: Target | None = None
    """The deployment that embeds the query; set when there are collections."""
    retrieved_p50: int | None = None
    """Median passage tokens of these collections' last turns, where known."""
    options: Options = Options()
    conversation_id: UUID | None = None
    parent_id: UUID | None = None
    messages: tuple[Message, ...] | None = None
    """Set by `/v1`: the caller's own messages, never trimmed. `question` is then the last user text."""
    keep: bool = True
    """Whether the turn is stored with its text (a conversation) or only booked (`/v1` without documents)."""
    kind: CallKind = "chat"
    """What the ledger calls it."""
    on_the_house: bool = False
    """The installation pays, not a team: the house asks for itself."""

    @property
    def model(self) -> str:
        return self.targets[0].public_name

    @property
    def model_chosen(self) -> str:
        """The name that the next question of the conversation goes to: an alias stays one."""
        return self.route.name if self.route else self.model

    @property
    def with_pictures(self) -> bool:
        """Whether pictures go along, which not every deployment takes."""
        return any(a.picture is not None for a in self.attachments)

    @property
    def search_text(self) -> str:
        """Follow-ups are searched together with the question before them, since no model rewrites them."""
        previous = self.history[-1].question if self.history else ""
        return f"{previous}\n{self.question}".strip()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed, as a reader is told."""

    code: str
    message: str
    status: int
    retryable: bool
    detail: Mapping[str, Any] = field(default_factory=dict)
    retry_after: float | None = None

    def as_event(self) -> dict[str, Any]:
        """The failure as the body of an `error` event."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "detail": self.detail,
            "retry_after": self.retry_after,
        }

    def as_error(self) -> AppError:
        """The failure as an exception, for a door whose answer has not begun."""
        error = AppError(self.message, detail=self.detail, retry_after=self.retry_after, code=self.code)
        error.status, error.retryable = self.status, self.retryable  # type: ignore[misc]
        return error


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended: state of the row, finish reason of the `done` event, or the failure of the `error` event."""

    state: str
    finish_reason: str = ""
    error: Failure | None = None

    @classmethod
    def done(cls, finish_reason: str) -> "Ending":
        return cls("done", finish_reason or "stop")

    @classmethod
    def cut(cls, reason: str) -> "Ending":
        """`stopped` by a person or `interrupted` by the process going down; the text so far is kept."""
        return cls(reason, reason)

    @classmethod
    def failed(cls, error: Failure) -> "Ending":
        return cls("failed", "", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTurn:
    """Everything that is stored when a turn ends."""

    turn_id: UUID
    conversation_id: UUID | None
    team_id: UUID
    ending: Ending
    answer: str
    reasoning: str
    quotes: list[dict[str, Any]]
    matches: list[dict[str, Any]] | None
    notices: list[dict[str, Any]]
    usage: Mapping[str, Any]
    timing: Mapping[str, Any]
    deployment_id: UUID
    model: str
    """Whose answer it is."""
    passages: tuple[Passage, ...]
    whole: int
    """So many of them, from the first, are of files that went along whole."""
    cited: frozenset[int]

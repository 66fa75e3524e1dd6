"""A typed client of Tessera's REST API: `tessera = Tessera("https://chat.example", key="tsk_…")`.

GENERATED from app/api/schema.yaml by `python tools/make_client.py`; change that, not this. One file on httpx alone:
copy it into your project. Answers are dicts with types (TypedDict). A refusal raises `TesseraError` with the server's
code. Calls that are safe to repeat are: a POST carries an Idempotency-Key, so trying again charges nothing twice.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NotRequired, Self, TypedDict

import httpx


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event of a turn; `name` is turn, notice, status, sources, delta, usage, done, error, …"""

    id: int
    name: str
    data: dict[str, Any]


class TesseraError(Exception):
    """The server refused; `code` is one of the closed list at the top of the API's documentation."""

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: float | None) -> None:
        self.status = status
        self.code: str = error.get("code", "")
        self.message: str = error.get("message", "")
        self.detail: Mapping[str, Any] = error.get("detail") or {}
        self.request_id: str = error.get("request_id", "")
        self.retryable: bool = bool(error.get("retryable"))
        self.retry_after = retry_after
        """Seconds after which trying again makes sense, where the server said so."""
        super().__init__(f"{status} {self.code}: {self.message}")


def _refuse(response: httpx.Response) -> None:
    """Raise what the server says is wrong."""
    if response.is_success:
        return
    response.read()
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {"code": "http", "message": response.text[:200]}
    wait = response.headers.get("retry-after")
    raise TesseraError(response.status_code, error, float(wait) if wait else None)


def every(listing: Callable[..., Mapping[str, Any]], *named: str, **given: Any) -> Iterator[Any]:
    """All items of a list that comes in pages: `every(tessera.conversations_list, limit=200)`."""
    cursor = given.pop("cursor", None)
    while True:
        page = listing(*named, **given, **({"cursor": cursor} if cursor else {}))
        yield from page["items"]
        cursor = page["next"]
        if not cursor:
            return


def _events(response: httpx.Response) -> Iterator[Event]:
    """Events of an open stream; comments, which only keep it open, are left out."""
    number, name = 0, ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "id":
            number = int(value)
        elif field == "event":
            name = value
        elif field == "data":
            yield Event(number, name, json.loads(value))


class _Stream(AbstractContextManager[Iterator[Event]]):
    """`with tessera.turns_create(…) as events:` iterates over them and closes the connection at the end."""

    def __init__(self, opened: AbstractContextManager[httpx.Response]) -> None:
        self._opened = opened

    def __enter__(self) -> Iterator[Event]:
        response = self._opened.__enter__()
        try:
            _refuse(response)
        except TesseraError as exc:
            self._opened.__exit__(type(exc), exc, exc.__traceback__)
            raise
        return _events(response)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, exc, trace)


class _Http:
    """How every call goes out."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        retries: int = 2,
        timeout: float = 120.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._http = http or httpx.Client(timeout=timeout)
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._retries = retries

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None, **sent: Any
    ) -> Any:
        """Send, and try again what the server calls retryable. Errors: TesseraError, httpx.HTTPError."""
        given = self._given(method, headers)
        for left in range(self._retries, -1, -1):
            response = self._http.request(method, self._url + path, headers=given, **_sent(sent))
            try:
                _refuse(response)
            except TesseraError as exc:
                if not (exc.retryable and left):
                    raise
                time.sleep(min(exc.retry_after or 1.0, 30.0))
                continue
            is_json = response.headers.get("content-type", "").startswith("application/json")
            return response.json() if is_json else response.content or None
        raise AssertionError

    def _open(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None, **sent: Any
    ) -> _Stream:
        given = self._given(method, headers)
        return _Stream(self._http.stream(method, self._url + path, headers=given, **_sent(sent)))

    def _given(self, method: str, headers: Mapping[str, str | None] | None) -> dict[str, str]:
        own = {name: value for name, value in (headers or {}).items() if value is not None}
        if method == "POST":
            own.setdefault("Idempotency-Key", str(uuid.uuid4()))
        return {**self._headers, **own}


def _sent(sent: Mapping[str, Any]) -> dict[str, Any]:
    """What was given; None is left out of queries."""
    known = {name: value for name, value in sent.items() if value is not None}
    if "params" in known:
        known["params"] = {name: value for name, value in known["params"].items() if value is not None}
    return known


AudienceEnum = Literal["everyone", "team"]


BlankEnum = Literal[""]


BudgetUnitEnum = Literal["money", "tokens", "requests"]


CodeEnum = Literal[
    "invalid",
    "malformed",
    "not_authenticated",
    "not_allowed",
    "csrf",
    "not_found",
    "model_not_found",
    "method_not_allowed",
    "not_acceptable",
    "unsupported_media_type",
    "conflict",
    "turn_running",
    "attachment_not_ready",
    "too_large",
    "idempotency_key_reused",
    "idempotency_in_progress",
    "budget_exhausted",
    "paused",
    "price_missing",
    "rate_limited",
    "context_length_exceeded",
    "not_cleared",
    "unreadable",
    "lease_lost",
    "busy",
    "restarting",
    "part_failed",
    "database_unavailable",
    "broker_unavailable",
    "embedder_unavailable",
    "chat_server_failed",
    "rate_limited_upstream",
    "internal",
]


CollectionKindEnum = Literal["library", "conversation"]


EventsEnum = Literal[
    "document.ready", "document.failed", "turn.finished", "turn.failed", "export.ready", "export.failed"
]


ExportStatusEnum = Literal["queued", "running", "ready", "failed"]


GroupByEnum = Literal["day", "team", "person", "key", "model", "deployment", "kind"]


LevelEnum = Literal["public", "internal", "private"]


LimitUnitEnum = Literal["money", "tokens", "requests", "bytes", "pages"]


MembershipRoleEnum = Literal["viewer", "member", "admin", "owner"]


MessageRoleEnum = Literal["user", "assistant"]


NullEnum = Literal[None]


OwnerKindEnum = Literal["personal", "team"]


PeriodEnum = Literal["day", "week", "month", "lifetime"]


RatingEnum = Literal["good", "bad"]


ReasonEnum = Literal["wrong", "incomplete", "sources", "unclear", "other"]


ReceiptKindEnum = Literal["removed", "erased"]


ScopeEnum = Literal["installation", "team", "allowance", "person", "key"]


ScopesEnum = Literal["chat", "embed", "read", "write", "usage", "staff"]


SectionEnum = Literal["charge", "adjustment", "credit", "rounding"]


StateEnum = Literal["running", "done", "stopped", "interrupted", "failed"]


StatusEnum = Literal["queued", "parsing", "chunking", "embedding", "ready", "failed", "cancelled"]


VerbEnum = Literal["read", "write", "manage"]


WhereEnum = Literal["title", "question", "answer"]


class Address(TypedDict):
    url: str


class Assistant(TypedDict):
    id: str
    name: str
    slug: str
    model_name: str
    description: str
    prompt: str
    model: str
    collections: list[str]
    level: "LevelEnum"
    team: "TeamRef"
    shared_with: "list[TeamRef]"
    may_change: bool
    created_at: str
    updated_at: str


class AssistantCreate(TypedDict):
    slug: NotRequired[str]
    description: NotRequired[str]
    prompt: NotRequired[str]
    collections: NotRequired[list[str]]
    level: NotRequired["LevelEnum"]
    shared_with: NotRequired[list[str]]
    name: str
    model: str
    team: NotRequired[str]


class AssistantList(TypedDict):
    items: "list[Assistant]"
    next: str | None


class Budget(TypedDict):
    """A hard limit on what the key may use in each period."""

    unit: "BudgetUnitEnum"
    limit: str
    period: "PeriodEnum"


class BudgetInForce(TypedDict):
    id: str
    scope: "ScopeEnum"
    covers: str
    team: str | None
    person: str | None
    key: str | None
    name: str
    unit: "LimitUnitEnum"
    limit: str
    period: "PeriodEnum"
    zone: str
    model: str | None
    hard: bool
    granted: str | None
    mine_to_set: bool
    mine_to_remove: bool


class BudgetInForceList(TypedDict):
    items: "list[BudgetInForce]"
    next: str | None


class BudgetSet(TypedDict):
    scope: "ScopeEnum"
    unit: "LimitUnitEnum"
    limit: str
    period: "PeriodEnum"
    team: NotRequired[str]
    person: NotRequired[str]
    key: NotRequired[str]
    model: NotRequired[str]
    name: NotRequired[str]
    hard: NotRequired[bool]


class ChunkPreview(TypedDict):
    total: int
    chunks: "list[ChunkPreviewItem]"


class ChunkPreviewItem(TypedDict):
    index: int
    page: int
    start: int
    end: int
    heading: str
    text: str
    tokens: int


class ChunkPreviewRequest(TypedDict):
    chunking: NotRequired["Chunking"]
    limit: NotRequired[int]
    password: NotRequired[str]


class Chunking(TypedDict):
    """Tokens of the embedder."""

    size: NotRequired[int]
    overlap: NotRequired[int]
    small: NotRequired[int]


class Collection(TypedDict):
    id: str
    name: str
    description: str
    team: "TeamRef"
    level: "LevelEnum"
    kind: "CollectionKindEnum"
    document_count: int
    chunking: "Chunking"
    verbs: list[str]
    created_at: str
    updated_at: str


class CollectionCreate(TypedDict):
    name: str
    description: NotRequired[str]
    level: NotRequired["LevelEnum"]
    team: NotRequired[str]


class CollectionList(TypedDict):
    items: "list[Collection]"
    next: str | None


class Conversation(TypedDict):
    id: str
    title: str
    team: "TeamRef"
    model: str
    assistant: str | None
    collections: list[str]
    level: "LevelEnum"
    pinned: bool
    archived: bool
    created_at: str
    updated_at: str


class ConversationCreate(TypedDict):
    title: NotRequired[str]
    model: NotRequired[str]
    collections: NotRequired[list[str]]
    assistant: NotRequired[str | None]
    level: NotRequired["LevelEnum"]
    team: NotRequired[str]


class ConversationExport(TypedDict):
    version: int
    exported_at: str
    conversation: "Conversation"
    messages: "list[Message]"


class ConversationList(TypedDict):
    items: "list[ConversationListed]"
    next: str | None


class ConversationListed(TypedDict):
    id: str
    title: str
    team: "TeamRef"
    model: str
    assistant: str | None
    collections: list[str]
    level: "LevelEnum"
    pinned: bool
    archived: bool
    created_at: str
    updated_at: str
    match: "ConversationMatch | None"


class ConversationMatch(TypedDict):
    where: "WhereEnum"
    turn_id: str | None
    snippet: "list[SnippetPiece]"


class Document(TypedDict):
    id: str
    collection_id: str
    name: str
    title: str
    size: int
    mime: str
    reader: str
    sha256: str
    version: int
    serving_version: int
    status: "StatusEnum"
    progress: float | None
    queue_position: int | None
    eta_seconds: int | None
    progressed_at: str | None
    pages: int | None
    chunk_count: int
    tags: list[str]
    metadata: dict[str, Any]
    source_url: str
    warnings: list[Any]
    error: dict[str, Any] | None
    created_at: str
    updated_at: str
    ready_at: str | None


class DocumentAccepted(TypedDict):
    id: str
    collection_id: str
    name: str
    title: str
    size: int
    mime: str
    reader: str
    sha256: str
    version: int
    serving_version: int
    status: "StatusEnum"
    progress: float | None
    queue_position: int | None
    eta_seconds: int | None
    progressed_at: str | None
    pages: int | None
    chunk_count: int
    tags: list[str]
    metadata: dict[str, Any]
    source_url: str
    warnings: list[Any]
    error: dict[str, Any] | None
    created_at: str
    updated_at: str
    ready_at: str | None
    warning: "Warning | None"


class DocumentList(TypedDict):
    items: "list[Document]"
    next: str | None


class DocumentPage(TypedDict):
    number: int
    text: str
    start: int
    picture: str | None
    aspect: float | None


class DocumentPageList(TypedDict):
    items: "list[DocumentPage]"
    next: str | None


class Error(TypedDict):
    """Every refusal, whatever its status."""

    error: "ErrorBody"


class ErrorBody(TypedDict):
    code: "CodeEnum"
    message: str
    detail: dict[str, Any]
    request_id: str | None
    retryable: bool


class Export(TypedDict):
    """An export; fetch `…/file/` once its status is ready."""

    id: str
    status: "ExportStatusEnum"
    size: int | None
    counts: dict[str, int]
    created_at: str
    ended_at: str | None
    expires_at: str


class ExportList(TypedDict):
    items: "list[Export]"
    next: str | None


class Feedback(TypedDict):
    rating: "RatingEnum | NullEnum | None"
    reason: NotRequired["ReasonEnum | BlankEnum"]
    comment: NotRequired[str]


class Grant(TypedDict):
    principal: str
    name: str | None
    verb: "VerbEnum"
    created_at: str


class GrantList(TypedDict):
    items: "list[Grant]"
    next: str | None


class GrantPut(TypedDict):
    principal: NotRequired[str]
    email: NotRequired[str]
    verb: "VerbEnum | NullEnum | None"


class Key(TypedDict):
    id: str
    name: str
    prefix: str
    kind: str
    team_id: str
    scopes: "list[ScopesEnum]"
    models: list[str] | None
    networks: list[str]
    expires_at: str | None
    last_used_at: str | None
    budget: dict[str, Any] | None
    cost_centre: str
    created_at: str


class KeyCreate(TypedDict):
    name: str
    scopes: NotRequired["list[ScopesEnum]"]
    models: NotRequired[list[str] | None]
    expires_at: NotRequired[str | None]
    budget: NotRequired["Budget | None"]
    networks: NotRequired[list[str]]
    cost_centre: NotRequired[str]
    team: NotRequired[str]
    kind: NotRequired["OwnerKindEnum"]


class KeyIssued(TypedDict):
    id: str
    name: str
    prefix: str
    kind: str
    team_id: str
    scopes: "list[ScopesEnum]"
    models: list[str] | None
    networks: list[str]
    expires_at: str | None
    last_used_at: str | None
    budget: dict[str, Any] | None
    cost_centre: str
    created_at: str
    key: str


class KeyList(TypedDict):
    items: "list[Key]"
    next: str | None


class Leaving(TypedDict):
    team: "TeamRef"
    role: "MembershipRoleEnum"
    possible: bool
    last_owner: bool
    keys: int
    team_keys: int
    conversations: int


class Limit(TypedDict):
    scope: "ScopeEnum"
    name: str
    unit: "LimitUnitEnum"
    period: "PeriodEnum"
    limit: str
    spent: str
    held: str
    remaining: str
    resets_at: str | None
    hard: bool
    model: str | None


class LimitList(TypedDict):
    items: "list[Limit]"
    next: str | None


class LimitRequest(TypedDict):
    id: str
    limit_id: str
    scope: str
    covers: str
    unit: str
    amount: str | None
    note: str
    state: str
    granted: str | None
    ends_at: str
    created_at: str
    answer: str
    mine_to_decide: bool


class LimitRequestCreate(TypedDict):
    limit_id: str
    team: NotRequired[str]
    amount: NotRequired[str | None]
    note: NotRequired[str]


class LimitRequestDecision(TypedDict):
    grant: bool
    amount: NotRequired[str | None]
    answer: NotRequired[str]


class LimitRequestList(TypedDict):
    items: "list[LimitRequest]"
    next: str | None


class Me(TypedDict):
    id: str | None
    email: str | None
    name: str | None
    is_staff: bool
    scopes: "list[ScopesEnum]"
    key_id: str | None
    currency: str
    default_team: "TeamRef"
    teams: "list[Membership]"


class Membership(TypedDict):
    id: str
    name: str
    role: "MembershipRoleEnum"
    is_personal: bool


class Message(TypedDict):
    """A question (`user`) or its answer (`assistant`). An answer's id is the turn's: send it as
    `parent`."""

    id: str
    turn_id: str
    parent_id: str | None
    role: "MessageRoleEnum"
    text: str
    attachments: list[dict[str, Any]]
    reasoning: str
    state: "StateEnum"
    finish_reason: str | None
    model: str | None
    usage: "TurnUsage | None"
    price: "Money | None"
    timing: "TurnTiming | None"
    sources: "list[Source]"
    quotes: list[dict[str, Any]]
    matches: list[dict[str, Any]]
    notices: list[dict[str, Any]]
    error: dict[str, Any] | None
    feedback: dict[str, Any] | None
    created_at: str


class MessageList(TypedDict):
    items: "list[Message]"
    next: str | None


class Model(TypedDict):
    id: str
    name: str
    context_window: int | None
    max_output_tokens: int
    price: "list[ModelRate] | None"
    ttft_ms: float | None
    tokens_per_second: float | None
    region: str | None
    clearance: str
    leaves_premises: bool
    is_demonstration: bool
    tokenizer: str
    status: str | None


class ModelList(TypedDict):
    items: "list[Model]"
    next: str | None


class ModelRate(TypedDict):
    component: str
    price: "Money | None"
    per_units: int
    min_prompt_tokens: int


class Money(TypedDict):
    """An exact amount; never a float."""

    amount: str
    currency: str


class PagePlace(TypedDict):
    """A page that can be shown, and where the passage stands on it."""

    page: int
    picture: str | None
    aspect: float | None
    boxes: list[list[float]]


class Passage(TypedDict):
    passage_id: str
    document_id: str
    document_version: int
    collection_id: str
    title: str
    page: int | None
    page_end: int | None
    heading: str
    start: int
    end: int
    text: str
    sha256: str
    score: float
    warnings: list[str]


class PassageList(TypedDict):
    items: "list[Passage]"
    next: str | None


class Password(TypedDict):
    password: NotRequired[str]


class PatchedAssistantPatch(TypedDict):
    slug: NotRequired[str]
    description: NotRequired[str]
    prompt: NotRequired[str]
    collections: NotRequired[list[str]]
    level: NotRequired["LevelEnum"]
    shared_with: NotRequired[list[str]]
    name: NotRequired[str]
    model: NotRequired[str]


class PatchedCollectionPatch(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    level: NotRequired["LevelEnum"]
    chunking: NotRequired["Chunking"]


class PatchedConversationPatch(TypedDict):
    title: NotRequired[str]
    model: NotRequired[str]
    collections: NotRequired[list[str]]
    assistant: NotRequired[str | None]
    level: NotRequired["LevelEnum"]
    pinned: NotRequired[bool]
    archived: NotRequired[bool]


class PatchedDocumentChanges(TypedDict):
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class PatchedKeyPatch(TypedDict):
    name: NotRequired[str]
    scopes: NotRequired["list[ScopesEnum]"]
    models: NotRequired[list[str] | None]
    expires_at: NotRequired[str | None]
    budget: NotRequired["Budget | None"]
    networks: NotRequired[list[str]]
    cost_centre: NotRequired[str]


class PatchedSharePatch(TypedDict):
    audience: NotRequired["AudienceEnum"]
    expires_at: NotRequired[str | None]


class PatchedWebhookPatch(TypedDict):
    name: NotRequired[str]
    url: NotRequired[str]
    events: NotRequired["list[EventsEnum]"]
    active: NotRequired[bool]


class Prepaid(TypedDict):
    opening: str
    moved: str
    used: str
    closing: str


class Receipt(TypedDict):
    number: str
    kind: "ReceiptKindEnum"
    created_at: str
    collection_id: str
    document_id: str | None
    hashes: list[str]
    counts: dict[str, int]


class Search(TypedDict):
    query: str
    collections: NotRequired[list[str] | None]
    limit: NotRequired[int]
    filters: NotRequired["SearchFilters"]


class SearchFilters(TypedDict):
    """What the documents must be; all that are given must hold."""

    documents: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    languages: NotRequired[list[str]]
    since: NotRequired[str]
    until: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class Share(TypedDict):
    id: str
    url: str
    conversation_id: str
    title: str
    turn_id: str
    audience: "AudienceEnum"
    team: "TeamRef"
    expires_at: str | None
    created_at: str


class ShareCreate(TypedDict):
    audience: NotRequired["AudienceEnum"]
    expires_at: NotRequired[str | None]
    turn: NotRequired[str]


class ShareList(TypedDict):
    items: "list[Share]"
    next: str | None


class SharedConversation(TypedDict):
    """A shared conversation as its reader sees it."""

    id: str
    title: str
    shared_by: str
    audience: "AudienceEnum"
    expires_at: str | None
    created_at: str


class SharedMessage(TypedDict):
    id: str
    turn_id: str
    parent_id: str | None
    role: "MessageRoleEnum"
    text: str
    state: "StateEnum"
    model: str | None
    sources: "list[Source]"
    hidden_passages: int
    quotes: "list[SharedQuote]"
    created_at: str


class SharedMessageList(TypedDict):
    items: "list[SharedMessage]"
    next: str | None


class SharedQuote(TypedDict):
    n: int
    text: str


class SnippetPiece(TypedDict):
    text: str
    hit: bool


class Source(TypedDict):
    """A passage as it was sent to the model; `text`, title and place are blank where `readable` is
    false."""

    n: int
    passage_id: str
    document_id: str
    document_version: int
    collection_id: str
    title: str
    page: int | None
    page_end: int | None
    heading: str
    start: int
    end: int
    text: str
    sha256: str
    score: float
    cited: bool
    whole: bool
    warnings: list[str]
    readable: bool
    reason: str | None


class SourcePlaced(TypedDict):
    """A passage as it was sent to the model; `text`, title and place are blank where `readable` is
    false."""

    n: int
    passage_id: str
    document_id: str
    document_version: int
    collection_id: str
    title: str
    page: int | None
    page_end: int | None
    heading: str
    start: int
    end: int
    text: str
    sha256: str
    score: float
    cited: bool
    whole: bool
    warnings: list[str]
    readable: bool
    reason: str | None
    places: "list[PagePlace]"


class SourcePlacedList(TypedDict):
    items: "list[SourcePlaced]"
    next: str | None


class Statement(TypedDict):
    id: str
    number: int | None
    state: str
    team: "StatementTeam"
    month: str
    zone: str
    starts_at: str
    ends_at: str
    due_at: str
    issued_at: str | None
    currency: str
    total: str
    exact: str
    estimated: str
    entries_without_price: int
    prepaid: "Prepaid | None"
    due: str
    lines: "list[StatementLine]"


class StatementLine(TypedDict):
    section: "SectionEnum"
    of_month: str | None
    cost_centre: str
    model: str
    component: str
    price_version: str | None
    min_prompt_tokens: int | None
    quantity: int | None
    unit_price: str | None
    per_units: int | None
    exact: str | None
    amount: str | None
    estimated: str
    entries: int


class StatementList(TypedDict):
    items: "list[StatementSummary]"
    next: str | None


class StatementSummary(TypedDict):
    id: str
    number: int | None
    state: str
    team: "StatementTeam"
    month: str
    zone: str
    starts_at: str
    ends_at: str
    due_at: str
    issued_at: str | None
    currency: str
    total: str
    exact: str
    estimated: str
    entries_without_price: int
    prepaid: "Prepaid | None"
    due: str


class StatementTeam(TypedDict):
    id: str | None
    name: str


class TeamRef(TypedDict):
    id: str
    name: str


class Turn(TypedDict):
    id: str
    conversation_id: str | None
    parent_id: str | None
    state: "StateEnum"
    estimate: dict[str, Any]
    route: dict[str, Any] | None
    question: "Message"
    answer: "Message"


class TurnTiming(TypedDict):
    ttft_ms: float | None
    total_ms: float | None
    tokens_per_second: float | None


class TurnUsage(TypedDict):
    """What the server reported, or an estimate marked as such; null is unknown."""

    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: NotRequired[int | None]
    reasoning_tokens: NotRequired[int | None]
    estimated: bool | None
    price: "Money | None"


class Upload(TypedDict):
    password: NotRequired[str]
    file: str


class Usage(TypedDict):
    group_by: "GroupByEnum"
    tz: str
    items: "list[UsageItem]"
    total: "UsageSums"
    next: str | None


class UsageItem(TypedDict):
    price: "Money | None"
    cost: "Money | None"
    entries: int
    requests: int
    input_tokens: int
    output_tokens: int
    estimated_price: "Money | None"
    price_missing: int
    group: str | None
    name: str | None


class UsageSums(TypedDict):
    price: "Money | None"
    cost: "Money | None"
    entries: int
    requests: int
    input_tokens: int
    output_tokens: int
    estimated_price: "Money | None"
    price_missing: int


class Warning(TypedDict):
    part: str
    message: str


class Webhook(TypedDict):
    id: str
    name: str
    url: str
    kind: str
    team_id: str | None
    events: "list[EventsEnum]"
    active: bool
    waiting: int
    given_up: int
    delivered: int
    last_delivered_at: str | None
    problem: "WebhookProblem | None"
    created_at: str


class WebhookCreate(TypedDict):
    name: str
    url: str
    events: NotRequired["list[EventsEnum]"]
    kind: NotRequired["OwnerKindEnum"]
    team: NotRequired[str]


class WebhookIssued(TypedDict):
    id: str
    name: str
    url: str
    kind: str
    team_id: str | None
    events: "list[EventsEnum]"
    active: bool
    waiting: int
    given_up: int
    delivered: int
    last_delivered_at: str | None
    problem: "WebhookProblem | None"
    created_at: str
    secret: str


class WebhookList(TypedDict):
    items: "list[Webhook]"
    next: str | None


class WebhookProblem(TypedDict):
    """Why an event was not taken."""

    event: str
    status: int | None
    message: str
    next_at: str


class WebhookTest(TypedDict):
    event_id: str


class EventTurn(TypedDict):
    """Event `turn`: the first one."""

    turn_id: NotRequired[str]
    conversation_id: NotRequired[str | None]
    parent_id: NotRequired[str | None]
    model: NotRequired[str]
    payer: NotRequired[dict[str, Any]]
    attachments: NotRequired[list[dict[str, Any]]]
    estimate: NotRequired[dict[str, Any]]
    notices: NotRequired[list[dict[str, Any]]]


class EventNotice(TypedDict):
    """Event `notice`: trimmed, cap lowered, fallback, demonstration model, …"""

    code: NotRequired[str]
    message: NotRequired[str]


class EventStatus(TypedDict):
    """Event `status`."""

    phase: NotRequired[Literal["queued", "retrieving", "waiting", "generating"]]


class EventSources(TypedDict):
    """Event `sources`: the passages that were sent, by number."""

    items: NotRequired[list[dict[str, Any]]]


class EventQuotes(TypedDict):
    """Event `quotes`: sentences of the passages, word for word."""

    items: NotRequired[list[dict[str, Any]]]


class EventMatches(TypedDict):
    """Event `matches`: unmarked sentences that a passage says in nearly the same words."""

    items: NotRequired[list[dict[str, Any]]]


class EventDelta(TypedDict):
    """Event `delta`: one of text, reasoning, tool."""

    text: NotRequired[str]
    reasoning: NotRequired[str]
    tool: NotRequired[dict[str, Any]]


class EventUsage(TypedDict):
    """Event `usage`: before the end, once a model was called."""

    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    cached_input_tokens: NotRequired[int | None]
    reasoning_tokens: NotRequired[int | None]
    estimated: NotRequired[bool | None]
    price: NotRequired["Money | None"]


class EventDone(TypedDict):
    """Event `done`: one of the two ends."""

    finish_reason: NotRequired[Literal["stop", "length", "stopped", "interrupted", "content_filter"]]


class EventError(TypedDict):
    """Event `error`: the other end."""

    code: NotRequired[str]
    message: NotRequired[str]
    detail: NotRequired[dict[str, Any]]
    retryable: NotRequired[bool]
    retry_after: NotRequired[float | None]


class StreamEvent(TypedDict):
    """One event of the stream as text/event-stream has it; `data` is JSON."""

    id: NotRequired[str]
    event: Literal[
        "turn", "notice", "status", "sources", "quotes", "matches", "delta", "usage", "done", "error"
    ]
    data: str


class DocumentEvent(TypedDict):
    """One event about a document as text/event-stream has it; `data` is JSON."""

    id: NotRequired[str]
    event: Literal["following", "document", "removed", "done", "error"]
    data: str


class Tessera(_Http):
    """One method for each operation."""

    def assistants_create(self, body: AssistantCreate, *, idempotency_key: str | None = None) -> Assistant:
        """Assistants that I may use."""
        answer: Assistant = self._call(
            "POST", "/api/v1/assistants/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def assistants_delete(self, assistant_id: str) -> None:
        """One assistant."""
        self._call("DELETE", f"/api/v1/assistants/{assistant_id}/")

    def assistants_get(self, assistant_id: str) -> Assistant:
        """One assistant."""
        answer: Assistant = self._call("GET", f"/api/v1/assistants/{assistant_id}/")
        return answer

    def assistants_list(self) -> AssistantList:
        """Assistants that I may use."""
        answer: AssistantList = self._call("GET", "/api/v1/assistants/")
        return answer

    def assistants_update(self, assistant_id: str, body: PatchedAssistantPatch) -> Assistant:
        """One assistant."""
        answer: Assistant = self._call("PATCH", f"/api/v1/assistants/{assistant_id}/", json=body)
        return answer

    def attachments_create(
        self,
        conversation_id: str,
        *,
        idempotency_key: str | None = None,
        file: tuple[str, bytes] | None = None,
    ) -> DocumentAccepted:
        """Kept and queued in the conversation's own collection, which nobody else may read. Name its id in
        `attachments` of a turn once it is `ready`; the pre-count says whether it goes whole. 200: these
        very bytes are attached already."""
        answer: DocumentAccepted = self._call(
            "POST",
            f"/api/v1/conversations/{conversation_id}/attachments/",
            headers={"Idempotency-Key": idempotency_key},
            files={"file": file} if file else None,
        )
        return answer

    def attachments_list(self, conversation_id: str) -> DocumentList:
        """Files of a conversation. Each is a document: its status, its text and its removal are under
        `documents/`."""
        answer: DocumentList = self._call("GET", f"/api/v1/conversations/{conversation_id}/attachments/")
        return answer

    def budgets_get(self, budget_id: str) -> BudgetInForce:
        """One limit."""
        answer: BudgetInForce = self._call("GET", f"/api/v1/budgets/{budget_id}/")
        return answer

    def budgets_list(self, *, team: str | None = None) -> BudgetInForceList:
        """Limits that are mine to set, and the defaults they stand on."""
        answer: BudgetInForceList = self._call("GET", "/api/v1/budgets/", params={"team": team})
        return answer

    def budgets_remove(self, budget_id: str) -> None:
        """One limit."""
        self._call("DELETE", f"/api/v1/budgets/{budget_id}/")

    def budgets_set(self, body: BudgetSet, *, idempotency_key: str | None = None) -> BudgetInForce:
        """The same subject, unit, model and period again changes the limit that is there, at once."""
        answer: BudgetInForce = self._call(
            "POST", "/api/v1/budgets/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def collections_create(self, body: CollectionCreate, *, idempotency_key: str | None = None) -> Collection:
        """Collections I may read."""
        answer: Collection = self._call(
            "POST", "/api/v1/collections/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def collections_delete(self, collection_id: str) -> None:
        """One collection."""
        self._call("DELETE", f"/api/v1/collections/{collection_id}/")

    def collections_erase(self, collection_id: str, *, idempotency_key: str | None = None) -> Receipt:
        """Removes it with its documents and blanks every passage of them that was ever sent."""
        answer: Receipt = self._call(
            "POST",
            f"/api/v1/collections/{collection_id}/erase/",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def collections_events(
        self, collection_id: str, *, last_event_id: str | None = None, after: str | None = None
    ) -> _Stream:
        """What is being read in a collection, what changes and what is removed, for as long as one listens;
        with Last-Event-ID, or `after`, also what changed since."""
        return self._open(
            "GET",
            f"/api/v1/collections/{collection_id}/events/",
            headers={"Last-Event-ID": last_event_id},
            params={"after": after},
        )

    def collections_get(self, collection_id: str) -> Collection:
        """One collection."""
        answer: Collection = self._call("GET", f"/api/v1/collections/{collection_id}/")
        return answer

    def collections_list(self, *, cursor: str | None = None, limit: int | None = None) -> CollectionList:
        """Collections I may read."""
        answer: CollectionList = self._call(
            "GET", "/api/v1/collections/", params={"cursor": cursor, "limit": limit}
        )
        return answer

    def collections_update(self, collection_id: str, body: PatchedCollectionPatch) -> Collection:
        """One collection."""
        answer: Collection = self._call("PATCH", f"/api/v1/collections/{collection_id}/", json=body)
        return answer

    def conversation_shares_create(
        self, conversation_id: str, body: ShareCreate, *, idempotency_key: str | None = None
    ) -> Share:
        """Readers see the branch up to `turn`, what is asked later not. A passage is shown only to readers
        who may read its document at that moment."""
        answer: Share = self._call(
            "POST",
            f"/api/v1/conversations/{conversation_id}/shares/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )
        return answer

    def conversation_shares_list(self, conversation_id: str) -> ShareList:
        """Links to one conversation of mine."""
        answer: ShareList = self._call("GET", f"/api/v1/conversations/{conversation_id}/shares/")
        return answer

    def conversations_create(
        self, body: ConversationCreate, *, idempotency_key: str | None = None
    ) -> Conversation:
        """My conversations."""
        answer: Conversation = self._call(
            "POST", "/api/v1/conversations/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def conversations_delete(self, conversation_id: str) -> None:
        """One conversation of mine."""
        self._call("DELETE", f"/api/v1/conversations/{conversation_id}/")

    def conversations_export(
        self,
        conversation_id: str,
        *,
        format: Literal["json", "markdown"] | None = None,
        turn: str | None = None,
    ) -> ConversationExport:
        """Everything of a conversation that its owner may read now."""
        answer: ConversationExport = self._call(
            "GET", f"/api/v1/conversations/{conversation_id}/export/", params={"format": format, "turn": turn}
        )
        return answer

    def conversations_get(self, conversation_id: str) -> Conversation:
        """One conversation of mine."""
        answer: Conversation = self._call("GET", f"/api/v1/conversations/{conversation_id}/")
        return answer

    def conversations_list(
        self,
        *,
        archived: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        pinned: bool | None = None,
        q: str | None = None,
        sort: Literal["created", "updated"] | None = None,
        team: str | None = None,
    ) -> ConversationList:
        """My conversations."""
        answer: ConversationList = self._call(
            "GET",
            "/api/v1/conversations/",
            params={
                "archived": archived,
                "cursor": cursor,
                "limit": limit,
                "pinned": pinned,
                "q": q,
                "sort": sort,
                "team": team,
            },
        )
        return answer

    def conversations_update(self, conversation_id: str, body: PatchedConversationPatch) -> Conversation:
        """One conversation of mine."""
        answer: Conversation = self._call("PATCH", f"/api/v1/conversations/{conversation_id}/", json=body)
        return answer

    def documents_cancel(self, document_id: str, *, idempotency_key: str | None = None) -> Document:
        """Stop an ingestion that is queued or running."""
        answer: Document = self._call(
            "POST", f"/api/v1/documents/{document_id}/cancel/", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def documents_create(
        self,
        collection_id: str,
        *,
        idempotency_key: str | None = None,
        file: tuple[str, bytes] | None = None,
        body: Address | None = None,
    ) -> DocumentAccepted:
        """A file, or the address of one. 202: kept and queued. 200: this collection has these very bytes,
        or this address in line, already; the document it is."""
        answer: DocumentAccepted = self._call(
            "POST",
            f"/api/v1/collections/{collection_id}/documents/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
            files={"file": file} if file else None,
        )
        return answer

    def documents_delete(self, document_id: str) -> None:
        """Out of search, with its original. Answers keep the passages that were sent. The header
        `X-Tessera-Receipt` names the receipt."""
        self._call("DELETE", f"/api/v1/documents/{document_id}/")

    def documents_erase(self, document_id: str, *, idempotency_key: str | None = None) -> Receipt:
        """Removes it and blanks every passage of it that was ever sent. Hash, date and receipt stay. Also
        for a document that was removed before."""
        answer: Receipt = self._call(
            "POST", f"/api/v1/documents/{document_id}/erase/", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def documents_events(self, document_id: str) -> _Stream:
        """The document now and whenever it changes, until it is ready, failed or cancelled."""
        return self._open("GET", f"/api/v1/documents/{document_id}/events/")

    def documents_get(self, document_id: str) -> Document:
        """One document."""
        answer: Document = self._call("GET", f"/api/v1/documents/{document_id}/")
        return answer

    def documents_list(
        self,
        collection_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        name: str | None = None,
        status: list[Literal["cancelled", "chunking", "embedding", "failed", "parsing", "queued", "ready"]]
        | None = None,
        tag: list[str] | None = None,
    ) -> DocumentList:
        """Documents of a collection."""
        answer: DocumentList = self._call(
            "GET",
            f"/api/v1/collections/{collection_id}/documents/",
            params={"cursor": cursor, "limit": limit, "name": name, "status": status, "tag": tag},
        )
        return answer

    def documents_page(
        self, document_id: str, number: str, *, end: int | None = None, start: int | None = None
    ) -> PagePlace:
        """One page: whether it can be shown, and where a stretch of the document's text stands on it."""
        answer: PagePlace = self._call(
            "GET", f"/api/v1/documents/{document_id}/pages/{number}/", params={"end": end, "start": start}
        )
        return answer

    def documents_page_picture(self, document_id: str, number: str) -> bytes:
        """PDFs and pictures; other formats have no pages to show and answer 404 with the reason. Browsers
        keep it under its ETag and ask again each time, since rights may have gone."""
        answer: bytes = self._call("GET", f"/api/v1/documents/{document_id}/pages/{number}.webp")
        return answer

    def documents_preview(
        self, document_id: str, body: ChunkPreviewRequest, *, idempotency_key: str | None = None
    ) -> ChunkPreview:
        """Cut a document with other sizes, storing nothing."""
        answer: ChunkPreview = self._call(
            "POST",
            f"/api/v1/documents/{document_id}/preview/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )
        return answer

    def documents_replace(
        self, document_id: str, *, file: tuple[str, bytes] | None = None
    ) -> DocumentAccepted:
        """The version before serves until the new one is ready. 200: the bytes are the same."""
        answer: DocumentAccepted = self._call(
            "PUT", f"/api/v1/documents/{document_id}/file/", files={"file": file} if file else None
        )
        return answer

    def documents_reread(
        self, document_id: str, body: Password, *, idempotency_key: str | None = None
    ) -> DocumentAccepted:
        """What serves goes on serving until it is read."""
        answer: DocumentAccepted = self._call(
            "POST",
            f"/api/v1/documents/{document_id}/reread/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )
        return answer

    def documents_retry(
        self, document_id: str, body: Password, *, idempotency_key: str | None = None
    ) -> DocumentAccepted:
        """Try a failed or cancelled document again."""
        answer: DocumentAccepted = self._call(
            "POST",
            f"/api/v1/documents/{document_id}/retry/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )
        return answer

    def documents_text(
        self, document_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> DocumentPageList:
        """What the machine read of the version that serves, by page, the first page first."""
        answer: DocumentPageList = self._call(
            "GET", f"/api/v1/documents/{document_id}/text/", params={"cursor": cursor, "limit": limit}
        )
        return answer

    def documents_update(self, document_id: str, body: PatchedDocumentChanges) -> Document:
        """One document."""
        answer: Document = self._call("PATCH", f"/api/v1/documents/{document_id}/", json=body)
        return answer

    def exports_create(self, *, idempotency_key: str | None = None) -> Export:
        """Everything of mine as one file: chats, documents, keys without secrets, usage."""
        answer: Export = self._call(
            "POST", "/api/v1/me/export/", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def exports_file(self, export_id: str) -> bytes:
        """The file itself, a ZIP."""
        answer: bytes = self._call("GET", f"/api/v1/me/export/{export_id}/file/")
        return answer

    def exports_get(self, export_id: str) -> Export:
        """How far it is."""
        answer: Export = self._call("GET", f"/api/v1/me/export/{export_id}/")
        return answer

    def exports_list(self, *, cursor: str | None = None, limit: int | None = None) -> ExportList:
        """Everything of mine as one file: chats, documents, keys without secrets, usage."""
        answer: ExportList = self._call(
            "GET", "/api/v1/me/export/", params={"cursor": cursor, "limit": limit}
        )
        return answer

    def grants_list(self, collection_id: str) -> GrantList:
        """Who may use a collection, for those who manage it."""
        answer: GrantList = self._call("GET", f"/api/v1/collections/{collection_id}/grants/")
        return answer

    def grants_put(self, collection_id: str, body: GrantPut) -> GrantList:
        """Who may use a collection, for those who manage it."""
        answer: GrantList = self._call("PUT", f"/api/v1/collections/{collection_id}/grants/", json=body)
        return answer

    def keys_create(self, body: KeyCreate, *, idempotency_key: str | None = None) -> KeyIssued:
        """My keys, and those of teams I administer."""
        answer: KeyIssued = self._call(
            "POST", "/api/v1/keys/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def keys_get(self, key_id: str) -> Key:
        """One key."""
        answer: Key = self._call("GET", f"/api/v1/keys/{key_id}/")
        return answer

    def keys_list(self) -> KeyList:
        """My keys, and those of teams I administer."""
        answer: KeyList = self._call("GET", "/api/v1/keys/")
        return answer

    def keys_revoke(self, key_id: str) -> None:
        """One key."""
        self._call("DELETE", f"/api/v1/keys/{key_id}/")

    def keys_update(self, key_id: str, body: PatchedKeyPatch) -> Key:
        """One key."""
        answer: Key = self._call("PATCH", f"/api/v1/keys/{key_id}/", json=body)
        return answer

    def limit_requests_create(
        self, body: LimitRequestCreate, *, idempotency_key: str | None = None
    ) -> LimitRequest:
        """More of a limit, asked for."""
        answer: LimitRequest = self._call(
            "POST", "/api/v1/limit-requests/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def limit_requests_decide(
        self, request_id: str, body: LimitRequestDecision, *, idempotency_key: str | None = None
    ) -> LimitRequest:
        """Grant until the period ends, or decline."""
        answer: LimitRequest = self._call(
            "POST",
            f"/api/v1/limit-requests/{request_id}/decide/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )
        return answer

    def limit_requests_list(self) -> LimitRequestList:
        """Mine, and those that are mine to decide."""
        answer: LimitRequestList = self._call("GET", "/api/v1/limit-requests/")
        return answer

    def limits_list(self, *, team: str | None = None) -> LimitList:
        """Every limit on my way, as it stands now."""
        answer: LimitList = self._call("GET", "/api/v1/limits/", params={"team": team})
        return answer

    def me(self) -> Me:
        """Who I am."""
        answer: Me = self._call("GET", "/api/v1/me/")
        return answer

    def messages_list(
        self, conversation_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> MessageList:
        """Two messages for each turn, newest first. A page holds whole turns, so `limit` counts messages by
        pairs."""
        answer: MessageList = self._call(
            "GET",
            f"/api/v1/conversations/{conversation_id}/messages/",
            params={"cursor": cursor, "limit": limit},
        )
        return answer

    def models_list(self) -> ModelList:
        """Models I may use, the preferred first."""
        answer: ModelList = self._call("GET", "/api/v1/models/")
        return answer

    def my_team_get(self, team_id: str) -> Leaving:
        """One team that I am in."""
        answer: Leaving = self._call("GET", f"/api/v1/me/teams/{team_id}/")
        return answer

    def my_team_leave(self, team_id: str) -> None:
        """One team that I am in."""
        self._call("DELETE", f"/api/v1/me/teams/{team_id}/")

    def precount(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a message will take and cost, before it is sent. Never embeds or searches."""
        answer: dict[str, Any] = self._call("POST", "/api/v1/precount/", json=body)
        return answer

    def receipts_get(self, number: str) -> Receipt:
        """What a removal or an erasure took away."""
        answer: Receipt = self._call("GET", f"/api/v1/receipts/{number}/")
        return answer

    def search(self, body: Search, *, idempotency_key: str | None = None) -> PassageList:
        """The best passages I may read, best first. The query's embedding is booked to my paying team."""
        answer: PassageList = self._call(
            "POST", "/api/v1/search/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def shares_get(self, share_id: str) -> SharedConversation:
        """One link: read by whom it is for, changed and taken back by its owner."""
        answer: SharedConversation = self._call("GET", f"/api/v1/shares/{share_id}/")
        return answer

    def shares_list(self) -> ShareList:
        """My links, newest first."""
        answer: ShareList = self._call("GET", "/api/v1/shares/")
        return answer

    def shares_messages(
        self, share_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> SharedMessageList:
        """The messages of a shared conversation, newest first, in pages of whole turns."""
        answer: SharedMessageList = self._call(
            "GET", f"/api/v1/shares/{share_id}/messages/", params={"cursor": cursor, "limit": limit}
        )
        return answer

    def shares_revoke(self, share_id: str) -> None:
        """One link: read by whom it is for, changed and taken back by its owner."""
        self._call("DELETE", f"/api/v1/shares/{share_id}/")

    def shares_update(self, share_id: str, body: PatchedSharePatch) -> Share:
        """One link: read by whom it is for, changed and taken back by its owner."""
        answer: Share = self._call("PATCH", f"/api/v1/shares/{share_id}/", json=body)
        return answer

    def statements_csv(self, statement_id: str) -> bytes:
        """The same lines as CSV."""
        answer: bytes = self._call("GET", f"/api/v1/statements/{statement_id}/csv/")
        return answer

    def statements_get(self, statement_id: str) -> Statement:
        """One statement with its lines; a draft as it would be issued now."""
        answer: Statement = self._call("GET", f"/api/v1/statements/{statement_id}/")
        return answer

    def statements_list(self, *, cursor: str | None = None, limit: int | None = None) -> StatementList:
        """Those of the teams I own; of all teams for staff."""
        answer: StatementList = self._call(
            "GET", "/api/v1/statements/", params={"cursor": cursor, "limit": limit}
        )
        return answer

    def turns_create(
        self, conversation_id: str, body: dict[str, Any], *, idempotency_key: str | None = None
    ) -> _Stream:
        """Ask."""
        return self._open(
            "POST",
            f"/api/v1/conversations/{conversation_id}/turns/",
            headers={"Idempotency-Key": idempotency_key},
            json=body,
        )

    def turns_create_whole(
        self, conversation_id: str, body: dict[str, Any], *, idempotency_key: str | None = None
    ) -> Message:
        """Ask."""
        answer: Message = self._call(
            "POST",
            f"/api/v1/conversations/{conversation_id}/turns/",
            headers={"Idempotency-Key": idempotency_key},
            json={**body, "stream": False},
        )
        return answer

    def turns_events(self, turn_id: str, *, last_event_id: str | None = None) -> _Stream:
        """The events of a turn, after Last-Event-ID."""
        return self._open("GET", f"/api/v1/turns/{turn_id}/events/", headers={"Last-Event-ID": last_event_id})

    def turns_feedback(self, turn_id: str, body: Feedback) -> Message:
        """What the reader thought of the answer."""
        answer: Message = self._call("PUT", f"/api/v1/turns/{turn_id}/feedback/", json=body)
        return answer

    def turns_get(self, turn_id: str) -> Turn:
        """One turn of mine: a question and what came of it."""
        answer: Turn = self._call("GET", f"/api/v1/turns/{turn_id}/")
        return answer

    def turns_sources(self, turn_id: str) -> SourcePlacedList:
        """The passages that were sent in a turn, in the order of their numbers."""
        answer: SourcePlacedList = self._call("GET", f"/api/v1/turns/{turn_id}/sources/")
        return answer

    def turns_stop(self, turn_id: str) -> dict[str, Any]:
        """End a running turn, in whichever process it runs; what was written is kept."""
        answer: dict[str, Any] = self._call("POST", f"/api/v1/turns/{turn_id}/stop/")
        return answer

    def usage(
        self,
        *,
        all: bool | None = None,
        from_: str | None = None,
        group_by: Literal["day", "deployment", "key", "kind", "model", "person", "team"] | None = None,
        team: str | None = None,
        to: str | None = None,
        tz: str | None = None,
    ) -> Usage:
        """Ledger sums by group: my own, a team's (`team`, for its admins), or all (`all`, for staff)."""
        answer: Usage = self._call(
            "GET",
            "/api/v1/usage/",
            params={"all": all, "from": from_, "group_by": group_by, "team": team, "to": to, "tz": tz},
        )
        return answer

    def webhooks_create(self, body: WebhookCreate, *, idempotency_key: str | None = None) -> WebhookIssued:
        """Mine, and those of teams I administer."""
        answer: WebhookIssued = self._call(
            "POST", "/api/v1/webhooks/", headers={"Idempotency-Key": idempotency_key}, json=body
        )
        return answer

    def webhooks_delete(self, webhook_id: str) -> None:
        """One webhook."""
        self._call("DELETE", f"/api/v1/webhooks/{webhook_id}/")

    def webhooks_get(self, webhook_id: str) -> Webhook:
        """One webhook."""
        answer: Webhook = self._call("GET", f"/api/v1/webhooks/{webhook_id}/")
        return answer

    def webhooks_list(self) -> WebhookList:
        """Mine, and those of teams I administer."""
        answer: WebhookList = self._call("GET", "/api/v1/webhooks/")
        return answer

    def webhooks_test(self, webhook_id: str, *, idempotency_key: str | None = None) -> WebhookTest:
        """Whether a message arrives."""
        answer: WebhookTest = self._call(
            "POST", f"/api/v1/webhooks/{webhook_id}/test/", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def webhooks_update(self, webhook_id: str, body: PatchedWebhookPatch) -> Webhook:
        """One webhook."""
        answer: Webhook = self._call("PATCH", f"/api/v1/webhooks/{webhook_id}/", json=body)
        return answer

"""Values that cross the library's border: requests in, events out, one record per call. `servers.py` has whom to call.

Everything is frozen, so a step that holds a value knows nobody changes it behind its back.
Times are seconds unless a name says otherwise; token numbers are model tokens; `None` means "not told",
which is never the same as 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
"""Any value that JSON can hold; read it with the helpers of `adapters.json_tools`."""
JsonObject: TypeAlias = Mapping[str, Any]
Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
UsageState: TypeAlias = Literal["absent", "zero", "reported"]
Outcome: TypeAlias = Literal["completed", "stopped", "failed"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text inside a message of several parts."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, given by its bytes; `media_type` is e.g. `image/png`."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the prompt. `tool_call_id` is set on results (role `tool`) only."""

    role: Role
    content: str | tuple[TextPart | ImagePart, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What to ask a chat model; `model` is the name the server knows. The answer is always streamed."""

    model: str
    messages: tuple[Message, ...]
    max_output_tokens: int
    """Always sent: several servers generate without end when it is missing."""
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[JsonObject, ...] | None = None
    """Function tools in the OpenAI form `{type: function, function: {name, description, parameters}}`."""
    tool_choice: str | JsonObject | None = None
    response_format: JsonObject | None = None
    extra: JsonObject = field(default_factory=dict)
    """Further body fields, passed on as they are; they never replace a field set by this class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """Texts to embed; `input_type` (`query` or `passage`) is sent only when given."""

    model: str
    inputs: tuple[str, ...]
    input_type: str | None = None
    dimensions: int | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """Documents to be scored by how well each answers the query."""

    model: str
    query: str
    documents: tuple[str, ...]
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some more text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Some more of the model's reasoning, which is billed as output and is not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call; pieces with the same `index` belong together, `arguments` are to be joined."""

    index: int
    id: str | None
    name: str | None
    arguments: str


Event: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Disjoint token numbers, fit to be priced one by one; their sum is everything the call used."""

    input_uncached: int = 0
    cache_read: int = 0
    cache_write_short: int = 0
    """Written for about five minutes; also where a write without a stated lifetime goes."""
    cache_write_mid: int = 0
    """Written for about thirty minutes (OpenAI)."""
    cache_write_long: int = 0
    """Written for about one hour (Anthropic, Bedrock)."""
    cache_write_xlong: int = 0
    """Written for about twelve hours (OpenAI)."""
    input_audio: int = 0
    input_image: int = 0
    output_text: int = 0
    reasoning: int = 0
    output_audio: int = 0
    rejected_prediction: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the server said a call used.

    `input_tokens` is the whole input including cache reads and writes, `output_tokens` the whole output
    including reasoning, whatever the server's own convention is. Call `buckets()` of `usage.py` to price it.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    state: UsageState = "absent"
    raw: JsonObject | None = None
    """The server's own block, untouched (merged field by field where a server sends several)."""
    ambiguous: bool = False
    """Declared convention, total and pre-count do not agree; reconcile before trusting the split."""
    detail: Mapping[str, int] = field(default_factory=dict)
    """Finer numbers by the names of `Buckets` (e.g. `cache_write_long`, `input_audio`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Measured on our side of the wire, in seconds from `started_at` (UTC)."""

    started_at: datetime
    connected_s: float | None = None
    """Until the response headers."""
    first_token_s: float | None = None
    """Until the first piece of text, reasoning or tool call."""
    total_s: float | None = None
    """Until the body's end, or until the reader left."""
    dialled_s: float | None = None
    """How long it took to get a connection; of the last try."""
    prefill_s: float | None = None
    """Reading the prompt, where the server tells it; unlike the others a length, not a moment."""
    load_s: float | None = None
    """Loading the model for this call, where the server tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """A failure as a value, for storing; see `errors.py` for the classes."""

    name: str
    message: str
    code: str | None = None
    status: int | None = None
    retryable: bool = False
    never_sent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """Exactly one for each call, however it ended."""

    outcome: Outcome
    """completed: the server ended the answer; stopped: the reader left first; failed: see `error`."""
    finish_reason: FinishReason | None = None
    finish_raw: str | None = None
    usage: Usage = Usage()
    estimated: bool = False
    """The server's numbers are missing or partial, so whoever settles must estimate."""
    estimate_reason: str | None = None
    served_model: str | None = None
    upstream_id: str | None = None
    timing: Timing
    output_chars: int = 0
    """Characters of text, reasoning and tool arguments received."""
    error: ErrorInfo | None = None
    attempts: int = 0
    """Requests made; 0 when nothing was ever sent."""
    never_sent: bool = False
    """True when the server cannot have seen the request: nothing is owed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """One vector per input, in the order of the inputs."""

    vectors: list[list[float]]
    usage: Usage
    timing: Timing
    served_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One score per document, in the order of the documents; higher is better, the scale is the model's own."""

    scores: list[float]
    usage: Usage
    timing: Timing
    served_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a provider says later that a call came to: a witness beside the ledger, never the amount booked."""

    upstream_id: str | None
    cost: Decimal | None
    """In US dollars, what the account was charged; None where it is not told."""
    upstream_cost: Decimal | None
    """In US dollars, what the provider behind charged a key of one's own."""
    usage: Usage
    """In tokens of the model's own tokenizer."""
    served_model: str | None = None
    provider: str | None = None
    """Who served it behind the router."""
    finish_raw: str | None = None
    cancelled: bool = False

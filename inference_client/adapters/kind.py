"""What is told of a kind of server: what it can do and how it likes to be asked, as data instead of conditions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Auth: TypeAlias = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "sigv4"]
Grade: TypeAlias = Literal["supported", "recorded"]
Format: TypeAlias = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "ollama",
    "gemini",
    "bedrock",
    "cohere",
    "tgi",
    "triton",
]
Counting: TypeAlias = Literal["vllm", "llamacpp", "tgi", "anthropic", "gemini", "bedrock", "responses"]
Pictures: TypeAlias = Literal["openai", "anthropic", "gemini", "bedrock", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of server."""

    name: str
    title: str
    format: Format = "openai_chat"
    """Name of the adapter that speaks its wire format."""
    aliases: tuple[str, ...] = ()
    grade: Grade = "recorded"
    """supported: proved against a live server here; recorded: against recorded answers only."""
    auth: Auth = "bearer"
    version_path: str = "/v1"
    """Added to a base URL that names no version itself."""
    chat_path: str = "/chat/completions"
    """In paths, `{model}` stands for the model's name and any other name in braces for an option."""
    embed_path: str | None = "/embeddings"
    models_path: str | None = "/models"
    health_path: str | None = None
    """From the server's root, like `metrics_path`."""
    metrics_path: str | None = None
    cap_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    asks_usage: bool = True
    """Send `stream_options.include_usage`; False where usage comes by itself or the field is refused."""
    running_usage: bool = False
    """Ask for running totals on every chunk, so that a reader who leaves still gets an exact number."""
    refuses: frozenset[str] = frozenset()
    """Fields of ChatRequest that this kind cannot honour; sending them is an error, not a silent loss."""
    abort_stops_billing: bool = True
    leaves_premises: bool = False
    max_stop: int | None = None
    """How many stop texts are taken."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every chat request, which a request's own `extra` replaces."""
    embed_keys: frozenset[str] | None = None
    """Fields of an embeddings request that this kind knows, where it refuses all others."""
    embed_encoding: Literal["float", "base64_int8"] = "float"
    images: Pictures | None = "server"
    """By whose rule pictures are fitted and counted (see `images.py`); None where none are taken."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What a Server may say in its `options`, with what holds where it says nothing."""
    counts_by: str | None = None
    """Route that counts tokens, from the server's root."""
    counts_as: Counting | None = None
    """How that route is asked; see `counts.py`."""
    keepalive_s: float = 2.0

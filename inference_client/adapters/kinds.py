"""What each kind of server can do and how it likes to be asked, as data. Add a server by adding a row."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inference_client.types import Server

Auth: TypeAlias = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"]
Grade: TypeAlias = Literal["supported", "recorded"]
Format: TypeAlias = Literal[
    "openai_chat", "openai_responses", "anthropic_messages", "ollama", "gemini", "bedrock"
]


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
    counts_by: str | None = None
    """Route that counts tokens exactly, from the server's root."""
    keepalive_s: float = 2.0


_ROWS = (
    Kind(
        name="openai-compatible",
        title="OpenAI-compatible server",
        aliases=("generic", "openai_compatible", "custom"),
        grade="supported",
    ),
    Kind(
        name="llamacpp",
        title="llama.cpp server",
        aliases=("llama.cpp", "llama_cpp", "llama-cpp", "llama-server"),
        grade="supported",
        health_path="/health",
        metrics_path="/metrics",
        counts_by="/tokenize",
    ),
    Kind(
        name="vllm",
        title="vLLM",
        grade="supported",
        running_usage=True,
        health_path="/health",
        metrics_path="/metrics",
        counts_by="/tokenize",
    ),
    Kind(
        name="ollama-v1",
        title="Ollama, OpenAI routes",
        aliases=("ollama_v1", "ollama-openai", "ollama-cloud"),
        grade="supported",
        refuses=frozenset({"tool_choice"}),
        health_path="/",
    ),
    Kind(
        name="ollama",
        title="Ollama",
        format="ollama",
        grade="supported",
        chat_path="/api/chat",
        embed_path="/api/embed",
        refuses=frozenset({"tool_choice"}),
        health_path="/",
    ),
    Kind(
        name="anthropic-compatible",
        title="Server with Anthropic routes",
        aliases=("anthropic_compatible",),
        format="anthropic_messages",
        grade="supported",
        auth="x-api-key",
        chat_path="/messages",
        embed_path=None,
        refuses=frozenset({"seed", "response_format"}),
    ),
    Kind(
        name="anthropic",
        title="Anthropic",
        format="anthropic_messages",
        grade="supported",
        auth="x-api-key",
        chat_path="/messages",
        embed_path=None,
        refuses=frozenset({"seed", "response_format"}),
        leaves_premises=True,
    ),
    Kind(
        name="tgi-v1",
        title="Text Generation Inference, OpenAI routes",
        aliases=("tgi", "huggingface"),
        embed_path=None,
        health_path="/health",
        metrics_path="/metrics",
        counts_by="/tokenize",
    ),
    Kind(
        name="triton-v1",
        title="Triton, OpenAI front end",
        aliases=("triton",),
        health_path="/health/ready",
        metrics_path="/metrics",
    ),
    Kind(name="openai", title="OpenAI", cap_field="max_completion_tokens", leaves_premises=True),
    Kind(
        name="openai-responses",
        title="OpenAI, Responses route",
        format="openai_responses",
        chat_path="/responses",
        refuses=frozenset({"stop", "seed"}),
        leaves_premises=True,
    ),
    Kind(
        name="gemini",
        title="Google Gemini",
        aliases=("google",),
        format="gemini",
        auth="x-goog-api-key",
        version_path="/v1beta",
        leaves_premises=True,
        abort_stops_billing=False,
    ),
    Kind(
        name="vertexai",
        title="Google Vertex AI",
        format="gemini",
        leaves_premises=True,
        abort_stops_billing=False,
    ),
    Kind(
        name="bedrock",
        title="Amazon Bedrock",
        format="bedrock",
        version_path="",
        embed_path=None,
        models_path=None,
        refuses=frozenset({"seed", "response_format"}),
        leaves_premises=True,
        abort_stops_billing=False,
    ),
    Kind(
        name="openrouter",
        title="OpenRouter",
        asks_usage=False,
        leaves_premises=True,
        abort_stops_billing=False,
    ),
    Kind(
        name="azure",
        title="Microsoft Foundry",
        aliases=("foundry", "azure-openai"),
        auth="api-key",
        cap_field="max_completion_tokens",
        version_path="/openai/v1",
        leaves_premises=True,
    ),
    Kind(
        name="digitalocean", title="DigitalOcean Inference", leaves_premises=True, abort_stops_billing=False
    ),
    Kind(name="deepseek", title="DeepSeek", embed_path=None, leaves_premises=True),
    Kind(name="groq", title="Groq", leaves_premises=True, abort_stops_billing=False),
    Kind(
        name="mistral",
        title="Mistral",
        asks_usage=False,
        refuses=frozenset({"seed"}),
        leaves_premises=True,
        abort_stops_billing=False,
    ),
    Kind(name="perplexity", title="Perplexity", version_path="", leaves_premises=True),
    Kind(name="xai", title="xAI", leaves_premises=True),
    Kind(name="zai", title="Z.ai", version_path="/api/paas/v4", leaves_premises=True),
    Kind(name="gpustack", title="GPUStack"),
    Kind(name="bedrock-mantle", title="Amazon Bedrock, OpenAI routes", leaves_premises=True),
)

KINDS: dict[str, Kind] = {row.name: row for row in _ROWS}
_ALIASES = {alias: row for row in _ROWS for alias in (row.name, *row.aliases)}
GENERIC = KINDS["openai-compatible"]


def kind_of(name: str) -> Kind:
    """The row called `name` or by one of its aliases. Raises LookupError naming those there are."""
    try:
        return _ALIASES[name.strip().lower()]
    except KeyError:
        known = ", ".join(sorted(KINDS))
        raise LookupError(f"There is no kind of inference server called {name!r}. Known: {known}.") from None


def api_url(server: Server, kind: Kind, path: str) -> str:
    """`path` below the server's API root, which may be given with or without its version (`/v1`)."""
    base = server.base_url.rstrip("/")
    return f"{base}{'' if _version(base) else kind.version_path}{path}"


def root_url(server: Server, path: str) -> str:
    """`path` below the server's root, for routes such as `/health` that stand beside the API."""
    base = server.base_url.rstrip("/")
    return base.removesuffix(_version(base)) + path


def auth_headers(server: Server, kind: Kind) -> dict[str, str]:
    """The headers that carry the key, with the server's own headers over them."""
    headers: dict[str, str] = {}
    if server.api_key:
        headers = (
            {"authorization": f"Bearer {server.api_key}"}
            if kind.auth == "bearer"
            else {kind.auth: server.api_key}
        )
    headers.update({name.lower(): value for name, value in server.headers.items()})
    return headers


def _version(base: str) -> str:
    """The `/v1` at the end of `base`, or an empty string."""
    last = base.rpartition("/")[2]
    return f"/{last}" if last[:1] == "v" and last[1:2].isdigit() else ""

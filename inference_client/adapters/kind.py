"""What is told of a kind of server: what it can do and how it likes to be asked, as data instead of conditions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from inference_client.servers import Server
from inference_client.types import ChatRequest

if TYPE_CHECKING:
    from inference_client.adapters.adapter import Adapter
    from inference_client.adapters.wire import WireRequest

Grade: TypeAlias = Literal["supported", "tried", "recorded", "documented"]
"""supported: the tests ask a live server at each run. tried: a real server was asked by hand, and its answers are
read again at each run. recorded: so are answers that others recorded. documented: what is sent is tested against
the server's documentation only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How a server is asked how many tokens a prompt has; `counts.py` has ways to ask."""

    path: str
    """From the server's root, with places as in a Kind."""
    ask: "Callable[[Adapter, Server, Kind, ChatRequest, str], WireRequest]"
    """The question, to be sent to the URL that comes last. Raises Unsupported as a call would."""
    error_pct: float = 0.0
    """How far the count may be off from the bill."""
    text_only: bool = False
    """It counts the text of a prompt; pictures must be added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of server. It speaks the wire format of the adapter that names it."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    grade: Grade = "documented"
    auth: str = "bearer"
    """How the key is sent: `bearer`, `sigv4` (signed with AWS access keys), or the name of a header."""
    version_path: str | None = "/v1"
    """Added to a base URL that names no version itself; None where routes stand at the server's root."""
    chat_path: str = "/chat/completions"
    """In paths, `{model}` stands for the model's name and any other name in braces for an option."""
    embed_path: str | None = "/embeddings"
    rerank_path: str | None = None
    rerank_texts: str = "documents"
    """By what name a rerank request carries the texts."""
    models_path: str | None = "/models"
    health_path: str | None = None
    """From the server's root, like `metrics_path`."""
    metrics_path: str | None = None
    cap_field: str = "max_tokens"
    """By what name the cap of the output is sent in the OpenAI shape."""
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
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of every request (names in lower case), which a server's own replace."""
    embed_keys: frozenset[str] | None = None
    """Fields of an embeddings request that this kind knows, where it refuses all others."""
    embed_encoding: Literal["float", "base64_int8"] = "float"
    embed_batch: int | None = None
    """How many texts one embeddings request takes; more are sent in several."""
    images: str | None = "server"
    """By whose rule pictures are fitted and counted (a name of `images.RULES`); None where none are taken."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What a Server may say in its `options`, with what holds where it says nothing."""
    counts: Counting | None = None
    """How it counts a prompt's tokens; None where it does not."""
    settled_path: str | None = None
    """Where a call's settled cost can be asked for later; the call's id follows."""
    keepalive_s: float = 2.0

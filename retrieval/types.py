"""Values and protocols that cross the tier's border. Pure: no framework, no IO."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable
from uuid import UUID

Role = Literal["query", "passage"]
Verb = Literal["read", "write", "manage"]
VERBS: tuple[Verb, ...] = ("read", "write", "manage")
"""Weakest first: each verb includes those before it."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is looking, as the web tier hands it down."""

    principals: frozenset[str]
    """`user:<uuid>`, `team:<uuid>`, and `keys:<uuid>` for the keys of a team alone; a grant to any of them counts for
    reading.
    """

    writing: frozenset[str] | None = None
    """Principals whose grants count for writing: the person and the teams where the role allows it.
    None: only personal ones, so that a caller who forgets roles gives away nothing."""

    managing: frozenset[str] | None = None
    """Principals whose grants count for managing. None: only personal ones."""

    def principals_for(self, verb: Verb) -> frozenset[str]:
        """The principals through which this viewer may use a grant of `verb` or stronger."""
        if verb == "read":
            return self.principals
        chosen = self.writing if verb == "write" else self.managing
        if chosen is None:
            return frozenset(p for p in self.principals if p.startswith("user:"))
        return chosen & self.principals


@dataclass(frozen=True, slots=True)
class Filters:
    """What the documents of a search must be; None: whatever they are. An empty sequence lets nothing through."""

    documents: Sequence[UUID] | None = None
    tags: Sequence[str] | None = None
    """Any of these among the document's `tags`."""
    languages: Sequence[str] | None = None
    """ISO 639-1."""
    since: datetime | None = None
    """Put in then or later."""
    until: datetime | None = None
    """Put in before then."""
    metadata: Mapping[str, object] | None = None
    """Fields that the document's metadata must hold, nested as they are."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """An embedder's answer: one vector per text, in the order of the texts."""

    vectors: Sequence[Sequence[float]]
    model: str
    input_tokens: int | None
    """None: the server did not say. Unknown is not zero."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one model, exactly as they are given: prefixes are put before it is called."""

    async def __call__(self, texts: Sequence[str], *, role: Role, payer: object, model: str) -> Embedded: ...


@dataclass(frozen=True, slots=True)
class Scored:
    """A reranker's answer: one score per text, higher is better."""

    scores: Sequence[float]
    model: str
    input_tokens: int | None


class Reranker(Protocol):
    """Scores texts by how well each answers the query. None: it cannot now, and the order found first has to do."""

    def ready(self) -> bool:
        """Whether it is worth asking at all; called where the database may be used."""
        ...

    async def __call__(self, query: str, texts: Sequence[str], *, payer: object, level: str) -> Scored | None:
        """`level`: the highest privacy level of the texts."""
        ...


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one document as search found it, with everything needed to open it again."""

    id: UUID
    """New for each search: one showing of a chunk."""
    chunk_id: UUID
    document_id: UUID
    document_version: int
    collection_id: UUID
    title: str
    page: int | None
    """1-based; None where the format has no pages."""
    start: int
    """Offset in characters in the whole document text; `text == document_text[start:end]`."""
    end: int
    text: str
    sha256: str
    """Of `text` in UTF-8, hex: a stored citation can be checked later."""
    score: float
    """0 to 1, higher is better; only comparable within one search."""
    heading: str = ""
    """Heading path, outermost first, joined by ` › `."""
    warnings: tuple[str, ...] = ()
    """What the reader should know about the source (guessed encoding, low OCR confidence)."""
    page_end: int | None = None
    """The last page, where the passage reaches over more than one."""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt, whatever server it goes to."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The stitched prompt, never over the budget it was given."""

    messages: tuple[PromptMessage, ...]
    passages: tuple[Passage, ...]
    """Those sent, in the order of their numbers: passages[0] is [1]."""
    input_tokens: int
    left_out: tuple[str, ...] = ()
    """One sentence for each thing that did not fit."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence taken word for word from a passage, as an answer of its own."""

    text: str
    number: int
    """The number of its passage in the list given, from 1."""
    score: float

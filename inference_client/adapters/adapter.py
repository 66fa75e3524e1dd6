"""A wire format, whole. To add one: a file in this folder with a subclass of Adapter, and `ADAPTER = ThatClass()`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from inference_client.adapters.addresses import api_url
from inference_client.adapters.base import Parser
from inference_client.adapters.kind import Kind
from inference_client.adapters.requests import check_embed_keys, post, refuse
from inference_client.adapters.scripted import Answer
from inference_client.adapters.wire import WireRequest
from inference_client.errors import Unsupported
from inference_client.servers import Server
from inference_client.types import ChatRequest, Embeddings, EmbedRequest


class Adapter(ABC):
    """Who speaks it, how one asks, how one reads, and how a scripted server speaks it."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]]
    """The kinds of server that speak it, the most typical first."""
    parsers: ClassVar[Mapping[str, Callable[[Kind], Parser]]]
    """By the name of the route, which is `api` in recordings; the first reads answers to `chat_request`."""
    content_type: ClassVar[str] = "text/event-stream"
    """Of streamed answers."""

    @abstractmethod
    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer; `refuse` was called before. Raises Unsupported."""

    @abstractmethod
    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """`answer` in pieces, as a server would stream it; one piece for each word, and whatever stands around."""

    def chat_url(self, server: Server, kind: Kind, model: str) -> str:
        """Where it is sent."""
        return api_url(server, kind, kind.chat_path, model)

    def chat_request(self, server: Server, kind: Kind, request: ChatRequest) -> WireRequest:
        """The request for a streamed answer. Raises Unsupported."""
        refuse(kind, request)
        url = self.chat_url(server, kind, request.model)
        return post(server, kind, url, self.chat_body(server, kind, request), accept=self.content_type)

    def parser(self, kind: Kind) -> Parser:
        """A fresh Parser for one answer."""
        return next(iter(self.parsers.values()))(kind)

    def embed_request(self, server: Server, kind: Kind, request: EmbedRequest) -> WireRequest:
        """The request for vectors. Raises Unsupported."""
        if kind.embed_path is None:
            raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")
        body = self.embed_body(kind, request)
        check_embed_keys(kind, body)
        url = api_url(server, kind, kind.embed_path, request.model)
        return post(server, kind, url, body, accept="application/json")

    def embed_body(self, kind: Kind, request: EmbedRequest) -> dict[str, Any]:
        """What is sent for vectors, where a kind has an `embed_path`. Raises Unsupported."""
        raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")

    def embed_batch(self, kind: Kind, model: str) -> int | None:
        """How many texts one request takes; None where there is no such limit."""
        return kind.embed_batch

    def embeddings(
        self, body: bytes, kind: Kind, count: int | None, headers: Mapping[str, str] | None = None
    ) -> Embeddings:
        """The vectors in `body`, in the order of the inputs, without timing; `count` of them where that is known.

        `headers` (names in lower case) hold the numbers of some servers. Raises MalformedAnswer.
        """
        raise Unsupported(f"{kind.title} makes no embeddings. Choose another server for them.")

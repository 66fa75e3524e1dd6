"""Embedders for tests, taken by setting like the real one: a deterministic twin, and the real server."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from asgiref.sync import sync_to_async
from django.conf import settings

from inference_client.client import Client
from inference_client.servers import Server
from inference_client.types import EmbedRequest
from retrieval.types import Embedded, Role

DIMENSION = 384


class Refusal(Exception):
    """What a web tier's error looks like from below: a sentence, and whether trying again may help."""

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = "embedder_down"
        self.retryable = retryable
        self.retry_after = retry_after


class TwinEmbedder:
    """Bag-of-words vectors: the more words two texts share, the nearer they are. Keeps what it was asked."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.texts: list[str] = []
        self.payers: list[object] = []
        self.trouble: list[Exception] = []
        """Raised one a call, before any vector is given."""
        self.fail_from: int | None = None
        """Calls from this one on (the first is 1) are refused for good."""
        self.drop = 0
        """How many of the next calls lose the last vector."""
        self.dimension = DIMENSION
        self.models = {"twin"}
        self.dimensions: dict[str, int] = {}
        """Of models whose vectors have another length."""
        self.asked: list[tuple[str, list[str]]] = []
        self.before = lambda: None

    async def __call__(self, texts: Sequence[str], *, role: Role, payer: object, model: str) -> Embedded:
        await sync_to_async(self.before)()
        if model not in self.models:
            raise Refusal(f"No server serves {model}.", retryable=False)
        self.payers.append(payer)
        if self.fail_from is not None and len(self.payers) >= self.fail_from:
            raise Refusal("The embedder refuses the key.", retryable=False)
        if self.trouble:
            raise self.trouble.pop(0)
        self.asked.append((model, list(texts)))
        vectors = [self._vector(text, self.dimensions.get(model, self.dimension)) for text in texts]
        if self.drop:
            self.drop -= 1
            return Embedded(vectors[:-1], "twin", None)
        self.texts += texts
        return Embedded(vectors, "twin", None)

    def _vector(self, text: str, dimension: int) -> list[float]:
        total = np.full(dimension, 0.01)
        for word in text.lower().split():
            total += _word(word.strip(".,?!"), dimension)
        return [float(x) for x in total]


@lru_cache(20_000)
def _word(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)


twin = TwinEmbedder()


async def real(texts: Sequence[str], *, role: Role, payer: object, model: str) -> Embedded:
    """The embedding server of the test stack."""
    server = Server(kind="openai", base_url=settings.EMBEDDING_URL, api_key=settings.EMBEDDING_API_KEY)
    client = Client()
    try:
        request = EmbedRequest(model=model, inputs=tuple(texts))
        answer = await client.embed(server, request)
    finally:
        await client.aclose()
    return Embedded(answer.vectors, model, answer.usage.input_tokens)

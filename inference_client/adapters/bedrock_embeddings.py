"""Embeddings of Amazon Bedrock: InvokeModel takes what the model's maker takes, and answers in its words."""

from collections.abc import Mapping
from typing import Any

from inference_client.adapters.json_tools import items, json_object, obj
from inference_client.adapters.requests import bare_embeddings, given
from inference_client.errors import Unsupported
from inference_client.types import Embeddings, EmbedRequest
from inference_client.usage import UsageShape, usage_read

_COUNTS = ("inputTextTokenCount", "headers")
_SHAPE = UsageShape(input=_COUNTS, output=())
_COUNT_HEADER = "x-amzn-bedrock-input-token-count"
_COHERE_BATCH = 96


def body_of(request: EmbedRequest) -> dict[str, Any]:
    """What the model named in `request` takes. Raises Unsupported for a maker that is not known."""
    if _maker(request.model) == "cohere":
        purpose = "search_query" if request.input_type == "query" else "search_document"
        shape = {"embedding_types": ["float"], **given(output_dimension=request.dimensions)}
        return {**request.extra, "texts": list(request.inputs), "input_type": purpose, **shape}
    body = {**request.extra, "inputText": "".join(request.inputs)}
    # The first Titan knows no other field.
    return body | given(dimensions=request.dimensions)


def batch_of(model: str) -> int:
    """How many texts one request takes. Raises Unsupported for a maker that is not known."""
    return _COHERE_BATCH if _maker(model) == "cohere" else 1


def vectors_in(body: bytes, count: int | None, headers: Mapping[str, str]) -> Embeddings:
    """The vectors in `body`. Cohere tells its tokens in a header only. Raises MalformedAnswer."""
    answer = json_object(body)
    found = answer.get("embeddings")
    rows = items(found) or items(obj(found).get("float")) or [answer.get("embedding")]
    told = headers.get(_COUNT_HEADER, "")
    block = {**answer, "headers": float(told)} if told.isascii() and told.isdigit() else answer
    known: dict[str, Any] = {name: block[name] for name in _COUNTS if name in block}
    return bare_embeddings(rows, count, usage_read(known, _SHAPE), None)


def _maker(model: str) -> str:
    for maker, mark in (("cohere", "cohere.embed"), ("titan", "titan-embed-text"), ("titan", "titan-e1t")):
        if mark in model.lower():
            return maker
    raise Unsupported(
        f"It is not known how {model!r} takes texts to embed on Amazon Bedrock. Use a model of Titan Text "
        "Embeddings or of Cohere Embed by its own name.",
        code="unknown_embedder",
    )

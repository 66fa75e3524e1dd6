"""The real embedding server, over HTTP."""

import base64
import http.client
import json
import re
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from django.conf import settings

from tests.integration.embedded.conftest import Reply, Server

Embed = Callable[..., Reply]
MILL = "query: Where is the key of the mill?"
PASSAGE = "passage: " + "The river runs past the old mill and the children play there in the evening. " * 7


def vectors(reply: Reply) -> Any:
    return np.array([row["embedding"] for row in reply.json["data"]], np.float32)


def test_shape_and_meaning(embed: Embed) -> None:
    reply = embed(
        [
            "query: Where is the key of the mill?",
            "passage: The mill's key hangs behind the door.",
            "passage: Der Schlüssel der Mühle hängt hinter der Tür.",
            "passage: Share prices fell on Tuesday.",
        ]
    )
    found = vectors(reply)
    assert reply.status == 200
    assert found.shape == (4, settings.EMBEDDING_DIMENSION)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-4)
    english, german, other = found[1:] @ found[0]
    assert min(english, german) > other
    assert reply.json["usage"]["prompt_tokens"] == reply.json["usage"]["total_tokens"] > 40
    assert (reply.json["truncated"], "x-truncated-inputs" in reply.headers) == ([], False)


def test_base64_is_the_same_vector(embed: Embed) -> None:
    packed = embed(MILL, encoding_format="base64").json["data"][0]["embedding"]
    assert np.array_equal(np.frombuffer(base64.b64decode(packed), "<f4"), vectors(embed(MILL))[0])


def test_a_text_has_nearly_the_same_vector_in_any_company(embed: Embed) -> None:
    alone, beside = vectors(embed(MILL))[0], vectors(embed([PASSAGE, MILL, "x"]))[1]
    assert float(alone @ beside) > 0.99


def test_a_long_text_is_cut_and_the_answer_says_which(embed: Embed) -> None:
    reply = embed(["passage: short", "passage: " + "word " * 2000, "passage: short too"])
    assert (reply.json["truncated"], reply.headers["x-truncated-inputs"]) == ([1], "1")
    assert 512 < reply.json["usage"]["prompt_tokens"] < 540


def test_a_nul_byte_hides_nothing(embed: Embed) -> None:
    with_nul, without, first_half = vectors(
        embed(["passage: mill\0river key", "passage: mill river key", "passage: mill"])
    )
    assert float(with_nul @ without) > 0.999
    assert float(with_nul @ first_half) < 0.98


@pytest.mark.parametrize("text", ["\0", " ", "\ud7ff", "🙂" * 300, "�", "</s><s>", "a" * 20_000])
def test_odd_texts_have_vectors(embed: Embed, text: str) -> None:
    found = vectors(embed(text))
    assert np.isfinite(found).all()
    assert abs(float(np.linalg.norm(found)) - 1) < 1e-3


def test_usage_counts_the_models_own_tokens(embed: Embed) -> None:
    assert embed("query: hello").json["usage"]["prompt_tokens"] == len(
        ["<s>", "▁que", "ry", ":", "▁hell", "o", "</s>"]
    )


@pytest.mark.parametrize(
    ("method", "path", "key", "status", "code"),
    [
        ("POST", "/v1/embeddings", "", 401, "invalid_api_key"),
        ("POST", "/v1/embeddings", "wrong", 401, "invalid_api_key"),
        ("GET", "/v1/models", "", 401, "invalid_api_key"),
        ("GET", "/v1/embeddings", None, 404, "not_found"),
        ("GET", "/docs", None, 404, "not_found"),
        ("POST", "/v1/embeddings", None, 400, "invalid_json"),
    ],
)
def test_refusals(embedder: Server, method: str, path: str, key: str | None, status: int, code: str) -> None:
    reply = embedder.ask(method, path, b"{", key=key)
    assert (reply.status, reply.json["error"]["code"]) == (status, code)


def test_health_needs_no_key_and_models_names_the_window(embedder: Server) -> None:
    assert embedder.ask("GET", "/health", key="").status == 200
    (row,) = embedder.ask("GET", "/v1/models").json["data"]
    assert (row["id"], row["dimension"], row["max_model_len"]) == (settings.EMBEDDING_MODEL, 384, 512)


def test_its_counters_grow_by_what_the_usage_said(embedder: Server, embed: Embed) -> None:
    def counted() -> int:
        page = embedder.ask("GET", "/metrics").body.decode()
        found = re.search(r"^embedding_prompt_tokens_total (\d+)$", page, re.MULTILINE)
        assert found is not None
        return int(found[1])

    before = counted()
    reply = embed(["one text", "and another one"])
    assert counted() - before == reply.json["usage"]["prompt_tokens"] > 0


def test_an_oversized_body_is_refused_before_it_is_sent(embedder: Server) -> None:
    parts = urlsplit(embedder.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    connection.putrequest("POST", "/v1/embeddings")
    connection.putheader("Authorization", f"Bearer {embedder.key}")
    connection.putheader("Content-Length", str(50 * 1024 * 1024))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["code"]) == (413, "request_too_large")
    connection.close()


def test_a_query_overtakes_a_batch_of_passages(embed: Embed) -> None:
    order: list[str] = []
    started = threading.Event()

    def batch() -> None:
        started.set()
        embed([PASSAGE] * 48, input_type="passage")
        order.append("batch")

    thread = threading.Thread(target=batch)
    thread.start()
    started.wait()
    for _ in range(3):
        embed(MILL, input_type="query")
        order.append("query")
    thread.join()
    assert order[:3] == ["query"] * 3

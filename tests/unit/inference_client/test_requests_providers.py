"""What is sent to providers: routes with a version, extras, fields that are kept from them."""

from typing import Any

import orjson
import pytest

from inference_client.adapters.addresses import api_url, option
from inference_client.adapters.kinds import ADAPTERS, adapter_for, kind_of
from inference_client.errors import Unsupported
from inference_client.servers import Server
from tests.unit.inference_client.asking import embed_sent, sent
from tests.unit.inference_client.test_requests import SCHEMA, TALK, TOOL

ROUTES: list[tuple[str, str, Any, str, str]] = [
    (
        "azure-deployments",
        "https://x.openai.azure.com",
        None,
        "https://x.openai.azure.com/openai/deployments/m%2Fx%3A1/chat/completions?api-version=2024-10-21",
        "max_completion_tokens",
    ),
    (
        "azure-deployments",
        "https://x.openai.azure.com/",
        {"api_version": "2025-04-01-preview"},
        "https://x.openai.azure.com/openai/deployments/m%2Fx%3A1/chat/completions?api-version=2025-04-01-preview",
        "max_completion_tokens",
    ),
    (
        "azure",
        "https://x.openai.azure.com",
        None,
        "https://x.openai.azure.com/openai/v1/chat/completions",
        "max_completion_tokens",
    ),
    (
        "foundry",
        "https://x.services.ai.azure.com/openai/v1",
        None,
        "https://x.services.ai.azure.com/openai/v1/chat/completions",
        "max_completion_tokens",
    ),
    (
        "azure-models",
        "https://x.services.ai.azure.com",
        None,
        "https://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
        "max_tokens",
    ),
]


@pytest.mark.parametrize(("kind", "base", "options", "url", "cap"), ROUTES)
def test_azure_routes(kind: str, base: str, options: Any, url: str, cap: str) -> None:
    wire, body = sent(kind, base=base, options=options)
    assert (wire.url, wire.headers["api-key"]) == (url, "k")
    assert (body[cap], body["stream_options"]) == (50, {"include_usage": True})
    assert "authorization" not in wire.headers


def test_azure_models_are_listed_with_the_version() -> None:
    kind = kind_of("azure-deployments")
    server = Server(kind=kind.name, base_url="http://h")
    assert api_url(server, kind, kind.models_path or "") == "http://h/openai/models?api-version=2024-10-21"
    assert embed_sent("azure-deployments")[0].url.endswith(
        "/deployments/e%2F1/embeddings?api-version=2024-10-21"
    )


def test_openrouter() -> None:
    wire, body = sent(
        "openrouter", base="https://openrouter.ai/api/v1", extra={"provider": {"sort": "price"}}
    )
    assert wire.url == "https://openrouter.ai/api/v1/chat/completions"
    assert (body["usage"], body["provider"]) == ({"include": True}, {"sort": "price"})
    assert "stream_options" not in body
    others = (kind.name for kind in ADAPTERS["openai_chat"].kinds if kind.name != "openrouter")
    assert all("usage" not in sent(name)[1] for name in others)


def test_unknown_fields_are_kept_from_a_server_that_refuses_them() -> None:
    wire, body = embed_sent("digitalocean", input_type="query", extra={"user": "u"})
    assert wire.url == "http://h:1/v1/embeddings"
    assert body == {"model": "e/1", "input": ["a"], "encoding_format": "float", "user": "u"}
    for fields, name in (({"dimensions": 4}, "dimensions"), ({"extra": {"truncate": 1}}, "truncate")):
        with pytest.raises(Unsupported, match=name):
            embed_sent("digitalocean", **fields)
    assert "input_type" not in embed_sent("openai", input_type="query", dimensions=3)[1]


def test_perplexity_embeddings() -> None:
    wire, body = embed_sent("perplexity")
    assert (wire.url, body["encoding_format"]) == ("http://h:1/v1/embeddings", "base64_int8")
    kind = kind_of("perplexity")
    answer = {"data": [{"index": 0, "embedding": "/wB/gAo="}], "usage": {"prompt_tokens": 7}}
    found = adapter_for(kind).embeddings(orjson.dumps(answer), kind, 1)
    assert found.vectors == [[-1.0, 0.0, 127.0, -128.0, 10.0]]
    assert found.usage.input_tokens == 7


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("openai", {"stop": ("1", "2", "3", "4", "5")}),
        ("tgi-v1", {"stop": ("1", "2", "3", "4", "5")}),
        ("tgi-native", {"tools": (TOOL,)}),
        ("triton-vllm", {"response_format": SCHEMA}),
        ("triton-trtllm", {"tool_choice": "auto"}),
        ("deepseek", {"messages": TALK}),
    ],
)
def test_what_these_kinds_cannot_do_is_refused(kind: str, fields: Any) -> None:
    with pytest.raises(Unsupported) as caught:
        sent(kind, **fields)
    assert caught.value.code == "unsupported_option"


@pytest.mark.parametrize("kind", ["tgi-native", "triton-vllm"])
def test_prompt_routes_make_no_embeddings(kind: str) -> None:
    with pytest.raises(Unsupported):
        embed_sent(kind)
    with pytest.raises(Unsupported):
        adapter_for(kind_of(kind)).embeddings(b"{}", kind_of(kind), 0)


def test_an_option_that_nobody_knows_is_nothing() -> None:
    kind = kind_of("azure-deployments")
    server = Server(kind=kind.name, base_url="http://h", options={"models": {"m": {"api_version": "1"}}})
    assert option(server, kind, "no such thing") is None
    assert (option(server, kind, "api_version", "m"), option(server, kind, "api_version")) == (
        "1",
        "2024-10-21",
    )

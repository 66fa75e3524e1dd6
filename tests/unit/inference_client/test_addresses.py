"""Addresses as people give them, with and without a version, and what is called."""

import pytest

from inference_client.adapters.addresses import api_url
from inference_client.adapters.kinds import kind_of
from inference_client.servers import Server


@pytest.mark.parametrize(
    ("kind", "base", "path", "called"),
    [
        ("openai-compatible", "http://h:1", "/chat/completions", "http://h:1/v1/chat/completions"),
        ("openai-compatible", "http://h:1/v1/", "/chat/completions", "http://h:1/v1/chat/completions"),
        ("openai-compatible", "http://v2.example/x", "/models", "http://v2.example/x/v1/models"),
        (
            "openai-compatible",
            "https://h.example/v1beta/openai",
            "/chat/completions",
            "https://h.example/v1beta/openai/chat/completions",
        ),
        (
            "vertexai",
            "https://h.example/v1/projects/p/locations/l/publishers/google",
            "/models/m:streamGenerateContent",
            "https://h.example/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
        ),
    ],
)
def test_a_version_is_added_only_where_there_is_none(kind: str, base: str, path: str, called: str) -> None:
    assert api_url(Server(kind=kind, base_url=base), kind_of(kind), path, "m") == called

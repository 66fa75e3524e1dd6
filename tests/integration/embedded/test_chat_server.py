"""The real llama.cpp server as the stack starts it."""

import pytest
from django.conf import settings

from tests.integration.embedded.conftest import Server

HELLO = [{"role": "user", "content": "Hello"}]


def test_it_answers_and_reports_usage(chat: Server) -> None:
    body = {"model": settings.INFERENCE_MODEL, "messages": HELLO, "max_tokens": 8}
    usage = chat.ask("POST", "/v1/chat/completions", body).json["usage"]
    assert 0 < usage["completion_tokens"] <= 8
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_a_stream_ends_with_usage(chat: Server) -> None:
    body = {"messages": HELLO, "max_tokens": 8, "stream": True, "stream_options": {"include_usage": True}}
    text = chat.ask("POST", "/v1/chat/completions", body).body.decode()
    assert '"usage":{"completion_tokens":' in text
    assert text.rstrip().endswith("data: [DONE]")


def test_its_window_is_4096_tokens_a_slot(chat: Server) -> None:
    (row,) = chat.ask("GET", "/v1/models").json["data"]
    assert (row["id"], row["meta"]["n_ctx"]) == (settings.INFERENCE_MODEL, 4096)
    assert b"llamacpp:prompt_tokens_total" in chat.ask("GET", "/metrics").body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("GET", "/props"),
        ("GET", "/slots"),
        ("POST", "/completion"),
    ],
)
def test_without_the_key_it_says_nothing(chat: Server, method: str, path: str) -> None:
    assert chat.ask(method, path, {} if method == "POST" else None, key="").status == 401


def test_slots_and_changes_of_properties_are_off(chat: Server) -> None:
    assert chat.ask("GET", "/slots").status == 501
    assert chat.ask("POST", "/props", {}).status == 501


def test_no_web_page_may_read_its_answers(chat: Server) -> None:
    reply = chat.ask("GET", "/v1/models", Origin="https://elsewhere.example")
    assert not reply.headers.get("access-control-allow-origin")

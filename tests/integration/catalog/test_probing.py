"""What is learnt of a server before it becomes a row."""

import pytest
from django.conf import settings

from app.catalog.probing import address_clean, on_premises, server_ask
from app.common.errors import InvalidInput
from tests.integration.catalog.listing import NOWHERE, models, ollama, serving


def test_the_packaged_chat_server_tells_its_kind_model_and_window() -> None:
    found = server_ask(settings.INFERENCE_URL, settings.INFERENCE_API_KEY)
    assert (found.reachable, found.kind, found.healthy, found.problem) == (True, "llamacpp", True, None)
    assert [(m.name, m.context_window) for m in found.chat_models] == [(settings.INFERENCE_MODEL, 4096)]


@pytest.mark.parametrize("key", ["", "wrong"])
def test_a_refused_key_is_known_as_such(key: str) -> None:
    found = server_ask(settings.INFERENCE_URL, key)
    assert (found.reachable, found.key_refused, found.models) == (True, True, ())
    assert "key" in found.problem


def test_nothing_there_is_said() -> None:
    found = server_ask(NOWHERE)
    assert (found.reachable, found.key_refused, found.kind) == (False, False, "openai-compatible")
    assert "cannot be reached" in found.problem


def test_what_ollama_holds_in_memory_comes_first_with_the_window_it_runs_with() -> None:
    names = ("nomic-embed-text:latest", "big:70b", "qwen3:8b")
    with serving(ollama(*names, loaded={"qwen3:8b": 8192})) as url:
        found = server_ask(url)
    assert (found.kind, found.version) == ("ollama-v1", "0.9.0")
    assert [(m.name, m.context_window) for m in found.chat_models] == [("qwen3:8b", 8192), ("big:70b", None)]


def test_a_name_without_a_tag_is_the_latest() -> None:
    with serving(ollama("llama3:latest", loaded={"llama3:latest": 2048})) as url:
        found = server_ask(url)
    assert found.lists("llama3")
    assert not found.lists("llama")
    assert (found.model("llama3").name, found.model("llama3").context_window) == ("llama3", 2048)
    assert found.model("other").context_window is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("", "vllm"), ("tgi", "tgi-v1"), ("openai", "openai")],
)
def test_a_named_kind_goes_before_what_it_looks_like(kind: str, expected: str) -> None:
    with serving({"/v1/models": models("m", owned_by="vllm", max_model_len=32768)}) as url:
        found = server_ask(url, kind=kind)
    assert (found.kind, found.models[0].context_window) == (expected, 32768)


def test_a_kind_that_cannot_be_asked_so_is_not_asked() -> None:
    found = server_ask(NOWHERE, kind="anthropic")
    assert (found.reachable, found.models) == (True, ())


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="vllm"):
        server_ask(NOWHERE, kind="abacus")


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        (" http://host:8000/v1/ ", "http://host:8000/v1"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_is_kept_without_its_last_slash(given: str, clean: str) -> None:
    assert address_clean(given) == clean


@pytest.mark.parametrize(
    "given",
    ["", "host:8000", "ftp://host/v1", "http://", "http://[bad/v1", "http://host:99999/v1", "http://a b/v1",
     "http://me:secret@host/v1", "http://host/v1?key=secret", "http://host/v1#x"],
)  # fmt: skip
def test_what_is_no_address_or_holds_a_secret_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        address_clean(given)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:11434", True),
        ("http://[::1]:8080/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://192.168.0.9:8000/v1", True),
        ("http://[fd00::5]/v1", True),
        ("http://8.8.8.8/v1", False),
        ("http://[2606:4700::1]/v1", False),
        ("http://[::ffff:8.8.8.8]/v1", False),
        ("http://[::ffff:10.0.0.1]/v1", True),
        ("https://api.example.com/v1", False),
    ],
)
def test_what_is_on_the_premises(url: str, expected: bool) -> None:
    assert on_premises(url) is expected

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.embedded.chat_model import PINNED, chat_model
from app.embedded.choice import choose, keys_mention, model_choose
from app.embedded.discovery import Found, addresses, ollama_address, provider_keys
from app.embedded.errors import EmbeddedError
from app.embedded.paths import Layout, layout_open

OLLAMA = Found(url="http://127.0.0.1:11434/v1", kind="ollama-v1", models=("qwen3:8b", "gemma3"))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_open(tmp_path / "data")


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "My-Model.Q4.gguf"
    path.write_bytes(b"GGUF\x03rest")
    return path


def never(*_: object) -> list[Found]:
    raise AssertionError("nobody was to be asked")


def answer(text: str) -> Callable[[str], str]:
    return lambda question: text


@pytest.mark.parametrize("asked", [None, "", "demonstration", "smollm2-135m-instruct"])
def test_the_demonstration_model_by_any_name(tmp_path: Path, asked: str | None) -> None:
    model = chat_model(asked, tmp_path)
    assert (model.name, model.is_demonstration) == ("smollm2-135m-instruct", True)


@pytest.mark.parametrize("name", list(PINNED))
def test_pinned_models_have_a_place_and_an_official_hash(tmp_path: Path, name: str) -> None:
    model = chat_model(name, tmp_path)
    assert (model.path.parent, model.is_demonstration) == (tmp_path / name, False)
    assert len(bytes.fromhex(PINNED[name].sha256)) == 32


def test_a_file_is_taken_by_its_path(tmp_path: Path, gguf: Path) -> None:
    model = chat_model(str(gguf), tmp_path)
    assert (model.name, model.path, model.is_demonstration) == ("my-model.q4", gguf, False)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "neither a file"), (b"", "not a GGUF file"), (b"PK\3\4", "not a GGUF file")]
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EmbeddedError, match=words):
        chat_model(str(path), tmp_path)


def test_a_model_is_remembered_until_the_demonstration_is_wanted_again(layout: Layout, gguf: Path) -> None:
    model_choose(layout, str(gguf))
    assert choose(layout, find=never, ask=None, say=print).model.path == gguf
    model_choose(layout, "demonstration")
    assert choose(layout, find=list, ask=None, say=print).model.is_demonstration


def test_without_a_person_the_demonstration_model_stays_and_the_command_is_told(layout: Layout) -> None:
    said: list[str] = []
    choice = choose(layout, find=lambda: [OLLAMA], ask=None, say=said.append)
    assert (choice.outside, choice.model.is_demonstration) == ({}, True)
    command = (
        "INFERENCE_URL=http://127.0.0.1:11434/v1 INFERENCE_KIND=ollama-v1 INFERENCE_MODEL=qwen3:8b "
        "python manage.py up"
    )
    assert said[-1].endswith(command)
    assert not layout.choice.exists()


@pytest.mark.parametrize(
    ("text", "model"),
    [("2", "gemma3"), (" 1 ", "qwen3:8b"), ("", None), ("0", None), ("3", None), ("yes", None)],
)
def test_a_person_may_pick_one(layout: Layout, text: str, model: str | None) -> None:
    choice = choose(layout, find=lambda: [OLLAMA], ask=answer(text), say=lambda line: None)
    assert choice.outside.get("INFERENCE_MODEL") == model
    assert layout.choice.exists() is (model is not None)
    if model:
        again = choose(layout, find=never, ask=None, say=lambda line: None)
        assert again.outside == choice.outside == OLLAMA.settings(model)


def test_with_nothing_found_nobody_is_asked(layout: Layout) -> None:
    choice = choose(layout, find=list, ask=lambda question: str(never()), say=print)
    assert choice.model.is_demonstration


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"model": ""})])
def test_a_damaged_memory_is_no_choice(layout: Layout, text: str) -> None:
    layout.choice.write_text(text)
    assert choose(layout, find=list, ask=None, say=print).model.is_demonstration


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", None),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999"),
        (":9999", "http://127.0.0.1:9999"),
        ("gpu.lan:11435", "http://gpu.lan:11435"),
        ("http://gpu.lan", "http://gpu.lan:80"),
        ("https://gpu.lan", "https://gpu.lan:443"),
        ("[::1]:5", "http://[::1]:5"),
        ('"localhost"', "http://localhost:11434"),
        ("host:notaport", None),
        ("ftp://host", None),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(value: str, expected: str | None) -> None:
    assert ollama_address(value) == expected


def test_our_own_ports_are_not_offered_to_ourselves() -> None:
    assert addresses({}, own_ports=[8000]) == ("http://127.0.0.1:11434", "http://127.0.0.1:8080")
    assert addresses({"OLLAMA_HOST": "gpu.lan"}, own_ports=[])[0] == "http://gpu.lan:11434"
    assert len(addresses({"OLLAMA_HOST": "127.0.0.1"}, own_ports=[])) == 3


def test_a_provider_key_is_mentioned_and_never_shown() -> None:
    said: list[str] = []
    environment = {"OPENAI_API_KEY": "sk-very-secret", "ANTHROPIC_API_KEY": "", "PATH": "/bin"}
    assert provider_keys(environment) == ["OpenAI"]
    keys_mention(environment, said.append)
    assert "OpenAI" in said[0]
    assert "sk-very-secret" not in said[0]
    keys_mention({}, said.append)
    assert len(said) == 1

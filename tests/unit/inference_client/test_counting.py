"""Counting before the call: what is asked of each kind of server, what is read, what is learned."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest

from inference_client import tokenizer_files
from inference_client.adapters.counts import count_read, count_request
from inference_client.adapters.kinds import KINDS, adapter_for, kind_of
from inference_client.counting import Counted, counted_here
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.learned import (
    MESSAGE_OVERHEAD,
    OTHER_PCT,
    PLAIN_PCT,
    PRIOR,
    REPLY_OVERHEAD,
    Facts,
    Learned,
)
from inference_client.meter import Meter, request_facts
from inference_client.servers import Server
from inference_client.tokenizer_files import counter_from_file
from inference_client.tokens import TokenizerFileError, counter
from inference_client.types import ChatRequest, Message
from tests.unit.inference_client.test_requests import TALK, TOOL

REQUEST = ChatRequest(model="m/x:1", messages=TALK, max_output_tokens=50, tools=(TOOL,), temperature=0.3)


def asked(kind: str, request: ChatRequest = REQUEST) -> Any:
    row = kind_of(kind)
    return count_request(
        adapter_for(row), Server(kind=kind, base_url="http://h:1/", api_key="k"), row, request
    )


ROUTES = [
    ("vllm", "http://h:1/tokenize", {"model", "messages", "tools", "add_generation_prompt"}),
    ("llamacpp", "http://h:1/tokenize", set()),
    ("tgi-v1", "http://h:1/chat_tokenize", {"messages", "tools"}),
    ("tgi-native", "http://h:1/chat_tokenize", {"messages", "tools"}),
    ("anthropic", "http://h:1/v1/messages/count_tokens", {"model", "messages", "system", "tools"}),
    ("gemini", "http://h:1/v1beta/models/m%2Fx%3A1:countTokens", {"generateContentRequest"}),
    ("bedrock", "http://h:1/model/m%2Fx%3A1/count-tokens", {"input"}),
    ("openai-responses", "http://h:1/v1/responses/input_tokens", {"model", "input", "tools"}),
]


@pytest.mark.parametrize(("kind", "url", "keys"), ROUTES)
def test_what_is_asked(kind: str, url: str, keys: set[str]) -> None:
    wire = asked(kind)
    assert wire.url == url
    assert set(orjson.loads(wire.body)) == keys
    assert {kind for kind, _, _ in ROUTES} <= {name for name in KINDS if KINDS[name].counts}


def test_the_prompt_counted_is_the_prompt_sent() -> None:
    gemini = orjson.loads(asked("gemini").body)["generateContentRequest"]
    assert set(gemini) == {"model", "contents", "systemInstruction", "tools"}
    converse = orjson.loads(asked("bedrock").body)["input"]["converse"]
    assert set(converse) == {"messages", "system", "toolConfig"}
    assert asked("anthropic").headers["anthropic-version"]
    # Routes that count text only are not sent the pictures.
    assert orjson.loads(asked("vllm").body)["messages"][1]["content"] == [
        {"type": "text", "text": "What is this?"}
    ]


def test_llamacpp_is_asked_for_its_template_first() -> None:
    options = {"chat_template_kwargs": {"enable_thinking": False}, "other": 1}
    wire = asked("llamacpp", ChatRequest(model="m", messages=TALK[:1], max_output_tokens=1, extra=options))
    assert wire.first.request.url == "http://h:1/apply-template"
    body = orjson.loads(wire.first.request.body)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert "other" not in body
    prompt = orjson.loads(wire.first.body(b'{"prompt":"<s>x"}'))
    assert prompt == {"content": "<s>x", "add_special": True, "parse_special": True}
    with pytest.raises(MalformedAnswer):
        wire.first.body(b"{}")


@pytest.mark.parametrize("kind", ["openai", "ollama", "openrouter", "triton-vllm", "azure", "digitalocean"])
def test_kinds_that_count_for_nobody_say_so(kind: str) -> None:
    with pytest.raises(Unsupported, match="count"):
        asked(kind)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"count": 12, "max_model_len": 4096, "tokens": [1]}, 12),
        ({"tokens": [1, 2, 3]}, 3),
        ({"tokens": [{"id": 1, "piece": "a"}]}, 1),
        ({"tokenize_response": [{}, {}], "templated_text": "x"}, 2),
        ({"input_tokens": 5}, 5),
        ({"totalTokens": 31, "cachedContentTokenCount": 4}, 31),
        ({"inputTokens": 0}, 0),
    ],
)
def test_what_is_read(body: Any, expected: int) -> None:
    assert count_read(orjson.dumps(body)) == expected


@pytest.mark.parametrize("body", [b"{}", b'{"count":"many"}', b"[]", b"no"])
def test_an_answer_without_a_number(body: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        count_read(body)


# ---------------------------------------------------------------------------------------------- on our side


def facts(request: ChatRequest) -> Facts:
    return request_facts(request, Meter(counter(), request.model).facts)


def test_a_prompt_counted_here_holds_its_frame_and_tools() -> None:
    ours = counter()
    bare = ChatRequest(model="m", messages=(Message("user", "Hello world"),), max_output_tokens=1)
    count = Learned().expected
    assert count(facts(bare)) == REPLY_OVERHEAD + MESSAGE_OVERHEAD + ours.count("Hello world")
    with_tool = ChatRequest(model="m", messages=bare.messages, max_output_tokens=1, tools=(TOOL,))
    assert count(facts(with_tool)) > count(facts(bare)) + 5
    called = ChatRequest(model="m", messages=TALK[2:3], max_output_tokens=1)
    assert count(facts(called)) > REPLY_OVERHEAD + MESSAGE_OVERHEAD


TWICE = (2.0, 8.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
SURE = Learned(PRIOR, 0.2, 0.4, 90)


@pytest.mark.parametrize(
    ("model", "text", "learned", "times", "band"),
    [
        ("gpt-4o", "word ", Learned(), 1, 0.0),
        ("gpt-4o", "word ", SURE, 1, 0.0),
        # Experience is believed, not the name.
        ("gpt-4o", "word ", Learned(TWICE, 7.0, 9.0, 90), 2, 7.0),
        ("other", "word ", Learned(), 1, PLAIN_PCT),
        ("other", "слово ", Learned(), 1, OTHER_PCT),
        ("other", "word ", Learned(TWICE, 2.5, 20.0, 40), 2, 2.5),
        ("other", "слово ", Learned(TWICE, 2.5, 20.0, 40), 2, 20.0),
    ],
)
def test_the_band_is_that_of_what_is_known(
    model: str, text: str, learned: Learned, times: int, band: float
) -> None:
    request = ChatRequest(model=model, messages=(Message("user", text * 500),), max_output_tokens=1)
    found = counted_here(request, kind_of("openai"), Meter(counter(), model, learned))
    assert found.input_tokens == times * Learned().expected(facts(request))
    assert (found.error_pct, found.source, found.counter) == (band, "local", "o200k_base")


def test_tools_make_even_an_own_tokenizer_a_little_unsure() -> None:
    request = ChatRequest(model="gpt-4o", messages=TALK[2:3], max_output_tokens=1, tools=(TOOL,))
    assert counted_here(request, kind_of("openai"), Meter(counter(), "gpt-4o")).error_pct == 3.0


@pytest.mark.parametrize(("error", "upper"), [(0.0, 100), (5.0, 105), (0.5, 101)])
def test_what_to_reserve_rounds_up(error: float, upper: int) -> None:
    assert Counted(input_tokens=100, error_pct=error, source="server", counter="x").upper == upper


# ------------------------------------------------------------------------------------------ tokenizer files


def _file(folder: Path) -> Path:
    library = import_module("tokenizers")
    made = library.Tokenizer(library.models.WordLevel({"[UNK]": 0, "grüß": 1, "dich": 2, ".": 3}, "[UNK]"))
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    path = folder / "tokenizer.json"
    made.save(str(path))
    return path


def test_a_models_own_file_counts_exactly(tmp_path: Path) -> None:
    own = counter_from_file(_file(tmp_path))
    assert own.count("grüß dich . du") == 4
    assert own.count("\ud800") == 1
    assert own.decode([1, 2]) == "grüß dich"
    assert own.exact_for("any/model")
    assert own.name == "file:tokenizer.json"
    with pytest.raises(LookupError):
        own.decode([99])
    request = ChatRequest(model="any", messages=(Message("user", "grüß dich"),), max_output_tokens=1)
    assert counted_here(request, kind_of("ollama"), Meter(own, "any")).error_pct == 3.0
    assert counted_here(request, kind_of("ollama"), Meter(own, "any", SURE)).error_pct == 0.0


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    wrong = tmp_path / "notes.json"
    wrong.write_text(json.dumps({"a": 1}))
    half = tmp_path / "half.json"
    half.write_bytes(_file(tmp_path).read_bytes()[:300])
    for path, words in (
        (wrong, "notes.json"),
        (half, "half.json"),
        (tmp_path / "gone.json", "cannot be read"),
    ):
        with pytest.raises(TokenizerFileError, match=words):
            counter_from_file(path)


def test_the_package_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    path = _file(tmp_path)
    monkeypatch.setattr(tokenizer_files, "import_module", missing)
    with pytest.raises(TokenizerFileError, match=r"requirements/embedded\.txt"):
        counter_from_file(path)

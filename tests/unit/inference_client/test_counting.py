"""Counting before the call: what is asked of each kind of server, what is read, what is learned."""

import json
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest

from inference_client import tokenizer_files
from inference_client.adapters.counts import count_read, count_request
from inference_client.adapters.kinds import KINDS, adapter_for, kind_of
from inference_client.counting import Counted, counted_here, prompt_tokens
from inference_client.errors import MalformedAnswer, Unsupported
from inference_client.learned import Learned
from inference_client.tokenizer_files import counter_from_file
from inference_client.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, TokenizerFileError, counter
from inference_client.types import ChatRequest, Message, Server
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


def test_a_prompt_counted_here_holds_its_frame_and_tools() -> None:
    ours = counter()
    bare = ChatRequest(model="m", messages=(Message("user", "Hello world"),), max_output_tokens=1)
    assert prompt_tokens(bare, ours) == REPLY_OVERHEAD + MESSAGE_OVERHEAD + ours.count("Hello world")
    with_tool = ChatRequest(model="m", messages=bare.messages, max_output_tokens=1, tools=(TOOL,))
    assert prompt_tokens(with_tool, ours) > prompt_tokens(bare, ours) + 5
    called = ChatRequest(model="m", messages=TALK[2:3], max_output_tokens=1)
    assert prompt_tokens(called, ours) > REPLY_OVERHEAD + MESSAGE_OVERHEAD


@pytest.mark.parametrize(
    ("model", "learned", "expected", "band"),
    [
        ("gpt-4o", Learned(), 1.0, 3.0),
        ("gpt-4o", Learned(1.2, 1.5, 9), 1.2, 25.0),
        ("other", Learned(), 1.0, 35.0),
        ("other", Learned(0.8, 0.9, 40), 0.8, 12.5),
    ],
)
def test_the_band_is_that_of_what_is_known(
    model: str, learned: Learned, expected: float, band: float
) -> None:
    request = ChatRequest(model=model, messages=(Message("user", "word " * 500),), max_output_tokens=1)
    found = counted_here(request, kind_of("openai"), counter(), learned)
    assert found.input_tokens == round(prompt_tokens(request, counter()) * expected)
    assert found.error_pct == pytest.approx(band)
    assert (found.source, found.counter) == ("local", "o200k_base")


@pytest.mark.parametrize(("error", "upper"), [(0.0, 100), (5.0, 105), (0.5, 101)])
def test_what_to_reserve_rounds_up(error: float, upper: int) -> None:
    assert Counted(input_tokens=100, error_pct=error, source="server", counter="x").upper == upper


# ------------------------------------------------------------------------------------------------- learning


def test_one_ratio_is_learned_from_a_few_pairs() -> None:
    learned = Learned()
    for _ in range(60):
        learned = learned.updated(1000, 1250)
    assert learned.ratio_p50 == pytest.approx(1.25, rel=0.01)
    assert learned.ratio_p95 == pytest.approx(1.25, rel=0.05)
    assert (learned.n, learned.expected(1000)) == (60, pytest.approx(1250, abs=15))


@pytest.mark.parametrize("seed", range(5))
def test_spread_is_learned_as_spread(seed: int) -> None:
    """A log-normal ratio with a median of 0.9 has its 95th percentile at 0.9 · e^(1.645 · σ)."""
    chance = random.Random(seed)
    learned = Learned()
    for _ in range(3000):
        learned = learned.updated(10_000, round(9000 * chance.lognormvariate(0, 0.15)))
    assert learned.ratio_p50 == pytest.approx(0.9, rel=0.05)
    assert learned.ratio_p95 == pytest.approx(0.9 * 2.718281828 ** (1.645 * 0.15), rel=0.08)
    over = sum(round(9000 * chance.lognormvariate(0, 0.15)) > learned.upper(10_000) for _ in range(2000))
    assert over / 2000 < 0.12


def test_a_new_tokenizer_is_unlearned() -> None:
    learned = Learned(1.0, 1.02, 100_000)
    for _ in range(400):
        learned = learned.updated(1000, 2000)
    assert learned.ratio_p50 == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(("ours", "theirs"), [(0, 5), (5, 0), (-1, 3)])
def test_nothing_is_learned_from_nothing(ours: int, theirs: int) -> None:
    assert Learned().updated(ours, theirs) == Learned()


def test_the_upper_ratio_is_never_below_the_middle_and_one_pair_moves_little() -> None:
    wild = Learned().updated(1, 10**9)
    assert 1.0 < wild.ratio_p50 <= wild.ratio_p95 < 3.0
    chance = random.Random(3)
    learned = Learned()
    for _ in range(500):
        learned = learned.updated(100, chance.choice((30, 500)))
        assert learned.ratio_p50 <= learned.ratio_p95
        assert learned.error_pct >= 0


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
    assert counted_here(request, kind_of("ollama"), own, Learned()).error_pct == 3.0


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

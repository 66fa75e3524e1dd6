"""What holds for every wire format, ours or another package's, found and not listed."""

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inference_client.adapters import kinds
from inference_client.adapters.adapter import Adapter
from inference_client.adapters.kind import Kind
from inference_client.adapters.kinds import ADAPTERS, KINDS, adapter_for, found, parser_for
from inference_client.adapters.ollama import OllamaParser
from inference_client.adapters.openai_chat import OpenAIChatParser
from inference_client.adapters.scripted import Answer
from inference_client.adapters.tgi import TgiParser
from inference_client.adapters.triton import TritonParser
from inference_client.errors import Unsupported
from inference_client.images import RULES
from inference_client.servers import Server
from inference_client.testing.dialects import adapter_at
from inference_client.types import ChatRequest, EmbedRequest, Message
from tests.unit.inference_client.golden import given_of, path_of, sent_of
from tests.unit.inference_client.recordings import recordings

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=list(ADAPTERS))
def test_what_is_sent_is_what_was_looked_at(adapter: Adapter) -> None:
    path = path_of(adapter)
    sent = sent_of(adapter, given_of(adapter))
    hint = f"Write it with: python -m tests.unit.inference_client.golden {adapter.name}"
    assert path.exists(), f"{path.name} is missing. {hint}"
    assert sent == json.loads(path.read_text())["sent"], f"If that is meant: {hint}"


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_sends_the_cap_keeps_the_key_out_of_addresses_and_refuses(kind: Kind) -> None:
    adapter = adapter_for(kind)
    key = "AKIA:sesame" if kind.auth == "sigv4" else "sesame"
    server = Server(kind=kind.name, base_url="http://h:1", api_key=key, options={"region": "eu-west-1"})
    fields: dict[str, Any] = {"model": "m", "messages": (Message("user", "Hi"),), "max_output_tokens": 4711}
    wire = adapter.chat_request(server, kind, ChatRequest(**fields))
    assert re.search(rb"\b4711\b", wire.body)
    assert "sesame" not in wire.url
    assert b"sesame" not in wire.body
    assert any("sesame" in value for value in wire.headers.values()) is (kind.auth != "sigv4")
    assert kind.images is None or kind.images in RULES
    values: dict[str, Any] = {
        "seed": 1,
        "stop": ("a",),
        "tool_choice": "auto",
        "response_format": {"type": "x"},
    }
    values["tools"] = ({"type": "function", "function": {"name": "f"}},)
    for name in kind.refuses:
        with pytest.raises(Unsupported, match=name):
            adapter.chat_request(server, kind, ChatRequest(**fields, **{name: values[name]}))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_kind_makes_embeddings_or_says_that_it_does_not(kind: Kind) -> None:
    adapter = adapter_for(kind)
    server = Server(kind=kind.name, base_url="http://h:1", api_key="a:b", options={"region": "eu-west-1"})
    request = EmbedRequest(model="cohere.embed-v4:0", inputs=("one",))
    if kind.embed_path is not None:
        assert b"one" in adapter.embed_request(server, kind, request).body
        return
    with pytest.raises(Unsupported, match="embeddings"):
        adapter.embed_request(server, kind, request)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=list(ADAPTERS))
def test_a_format_that_makes_no_embeddings_reads_none(adapter: Adapter) -> None:
    if not any(kind.embed_path for kind in adapter.kinds):
        with pytest.raises(Unsupported):
            adapter.embeddings(b"{}", adapter.kinds[0], 0)
        with pytest.raises(Unsupported):
            adapter.embed_body(adapter.kinds[0], EmbedRequest(model="m", inputs=("a",)))


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=list(ADAPTERS))
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_scripted_answer_is_read_by_its_own_parser(adapter: Adapter, finish: Any) -> None:
    answer = Answer(words=("Ja", ", ", "so."), input_tokens=40, cache_read=8, finish=finish)
    parser = adapter.parser(adapter.kinds[0])
    events = parser.feed(b"".join(adapter.scripted(answer))) + parser.flush()
    usage = parser.usage()
    assert "".join(getattr(event, "text", "") for event in events) == "Ja, so."
    assert (parser.finish_reason, parser.complete, parser.error) == (finish, True, None)
    assert (usage.input_tokens, usage.output_tokens, usage.ambiguous) == (40, 3, False)
    bare = adapter.parser(adapter.kinds[0])
    bare.feed(b"".join(adapter.scripted(Answer(words=("Ja",), usage="none"))))
    assert bare.usage().state == "absent"


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_scripted_server_speaks_on_each_route(kind: Kind) -> None:
    server = Server(kind=kind.name, base_url="http://h:1", api_key="a:b", options={"region": "eu-west-1"})
    request = ChatRequest(model="m/x:1", messages=(Message("user", "Hi"),), max_output_tokens=1)
    path = adapter_for(kind).chat_request(server, kind, request).url.removeprefix("http://h:1")
    assert adapter_at(path) is adapter_for(kind)
    assert adapter_at("/v1/embeddings") is None


@pytest.mark.parametrize(
    ("api", "provider", "expected"),
    [
        ("generate_stream", "huggingface-tgi", TgiParser),
        ("generate_stream", "tgi", TgiParser),
        ("generate_stream", "nvidia-triton", TritonParser),
        ("generate", "triton", TritonParser),
        ("generate", "nobody", TgiParser),
        ("chat.completions", "ollama", OpenAIChatParser),
        ("api/chat", "ollama-cloud", OllamaParser),
    ],
)
def test_the_route_and_who_answered_choose_the_parser(api: str, provider: str, expected: Any) -> None:
    assert type(parser_for(api, provider)) is expected


# ------------------------------------------------------------------------------------------------ grades


def test_recorded_kinds_have_recordings() -> None:
    if not recordings():
        pytest.skip("no recordings: set TESSERA_SHARED")
    told = {(r.provider, r.api) for r in recordings()}
    for kind in (kind for kind in KINDS.values() if kind.grade == "recorded"):
        apis = adapter_for(kind).parsers
        names = {kind.name, *kind.aliases}
        mine = [api for provider, api in told if provider in names or kind.name.startswith(f"{provider}-")]
        assert any(api in apis for api in mine), kind.name


def test_tried_kinds_have_their_answers_in_the_tests() -> None:
    assert {kind.name for kind in KINDS.values() if kind.grade == "tried"} == {"vllm", "triton-vllm"}


def test_the_handbook_says_of_each_kind_what_is_so() -> None:
    page = (DOCS / "handbook" / "model-servers.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \|[^|]*\| (live|tried|recorded|documented) \|", page, re.MULTILINE)
    told = {name: word for names, word in rows for name in re.findall(r"`([^`]+)`", names)}
    words = {"supported": "live"}
    proved = {kind.name: words.get(kind.grade, kind.grade) for kind in KINDS.values()}
    # A kind that nothing proves yet may be missing; what is promised must be so.
    assert told == {name: word for name, word in proved.items() if name in told or word != "documented"}


# ------------------------------------------------------------------------------------- of other packages


class Foreign(Adapter):
    name = "foreign"
    kinds = (Kind(name="foreign-server", title="Foreign"),)
    parsers = {"foreign": OpenAIChatParser}

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        return {}

    def scripted(self, answer: Answer) -> Any:
        yield b""


FOREIGN = Foreign()
TWIN = Foreign()
TAKEN = SimpleNamespace()


def _entry(attribute: str) -> EntryPoint:
    return EntryPoint(name=attribute, value=f"{__name__}:{attribute}", group=kinds.GROUP)


def test_an_adapter_of_another_package_is_found() -> None:
    assert list(found([_entry("FOREIGN")])) == [*ADAPTERS, "foreign"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["FOREIGN", "TWIN"], "'foreign-server'"),
        (["TAKEN"], "is no Adapter"),
        (["NOWHERE"], "cannot be loaded"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_named(entries: list[str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        found(map(_entry, entries))


# ------------------------------------------------------------------------------------------ the page on it


def test_the_page_on_adding_one_shows_one_that_works() -> None:
    page = (DOCS / "add-a-backend.md").read_text()
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "ADAPTER =" in block
    )
    names: dict[str, Any] = {"__name__": "acme"}
    exec(compile(code, "acme.py", "exec"), names)
    adapter = names["ADAPTER"]
    test_a_scripted_answer_is_read_by_its_own_parser(adapter, "length")
    sent = sent_of(adapter, {"embed_model": "e"})
    assert sent["chat"]["url"] == "http://h:1/v1/talk"
    assert sent["chat"]["headers"]["x-acme-key"] == "sesame"
    assert sent["chat"]["body"]["most"] == 4711
    assert "embeddings" in sent["embed"]["refused"]

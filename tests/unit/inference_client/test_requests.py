"""What is sent to each kind of server."""

from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from inference_client.adapters.addresses import api_url, auth_headers, root_url
from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.adapters.wire import WireRequest
from inference_client.errors import InvalidRequest, Unsupported
from inference_client.servers import Server
from inference_client.types import ChatRequest, EmbedRequest, ImagePart, Message, TextPart, ToolCall

TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}},
}
CHOICE = {"type": "function", "function": {"name": "now"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
PICTURE = ImagePart(b"\x89PNG", "image/png")
TALK = (
    Message("system", "Be brief."),
    Message("user", (TextPart("What is this?"), PICTURE)),
    Message("assistant", "", tool_calls=(ToolCall("c1", "now", '{"zone":"UTC"}'), ToolCall("c2", "now", ""))),
    Message("tool", "12:00", tool_call_id="c1"),
    Message("tool", "13:00", tool_call_id="c2", name="now"),
    Message("assistant", "Noon."),
    Message("user", "Thanks."),
)


def sent(kind: str, *, base: str = "http://h:1", **options: Any) -> tuple[WireRequest, Any]:
    """The request, and its body as a value."""
    row = kind_of(kind)
    given: dict[str, Any] = {"model": "m/x:1", "messages": TALK, "max_output_tokens": 50}
    request = ChatRequest(**(given | options))
    wire = adapter_for(row).chat_request(Server(kind=kind, base_url=base, api_key="k"), row, request)
    return wire, orjson.loads(wire.body)


def test_openai_chat() -> None:
    wire, body = sent(
        "openai-compatible",
        temperature=0.0,
        stop=("a",),
        seed=3,
        tools=(TOOL,),
        extra={"user": "u", "model": "no"},
    )
    assert (wire.url, wire.headers["authorization"]) == ("http://h:1/v1/chat/completions", "Bearer k")
    assert body["model"] == "m/x:1"
    assert body["stream_options"] == {"include_usage": True}
    expected = {"max_tokens": 50, "temperature": 0.0, "stop": ["a"], "seed": 3, "tools": [TOOL], "user": "u"}
    assert {name: body[name] for name in expected} == expected
    assert "top_p" not in body
    system, user, called, first, second = body["messages"][:5]
    assert system == {"role": "system", "content": "Be brief."}
    assert user["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    assert called["content"] is None
    assert called["tool_calls"][0]["function"] == {"name": "now", "arguments": '{"zone":"UTC"}'}
    assert first == {"role": "tool", "content": "12:00", "tool_call_id": "c1"}
    assert second["name"] == "now"


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("openai", "max_completion_tokens", 50),
        ("vllm", "stream_options", {"include_usage": True, "continuous_usage_stats": True}),
        ("openrouter", "stream_options", None),
        ("mistral", "stream_options", None),
        ("llama.cpp", "max_tokens", 50),
    ],
)
def test_kinds_of_the_openai_shape_differ_by_data(kind: str, field: str, value: Any) -> None:
    assert sent(kind)[1].get(field) == value


def test_anthropic() -> None:
    wire, body = sent("anthropic", stop=("a",), tools=(TOOL,), tool_choice="required", top_p=0.5)
    assert urlsplit(wire.url).path == "/v1/messages"
    assert (wire.headers["x-api-key"], wire.headers["anthropic-version"]) == ("k", "2023-06-01")
    assert (body["system"], body["max_tokens"], body["stop_sequences"]) == ("Be brief.", 50, ["a"])
    assert body["tools"][0] == {"name": "now", "description": "The time.", "input_schema": {"type": "object"}}
    assert body["tool_choice"] == {"type": "any"}
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert body["messages"][0]["content"][1]["source"]["media_type"] == "image/png"
    assert body["messages"][1]["content"][0]["input"] == {"zone": "UTC"}
    assert [part["tool_use_id"] for part in body["messages"][2]["content"]] == ["c1", "c2"]
    assert sent("anthropic", tool_choice=CHOICE)[1]["tool_choice"] == {"type": "tool", "name": "now"}
    assert sent("anthropic", messages=TALK[:4])[1]["messages"][-1]["content"][0]["type"] == "tool_result"


def test_ollama() -> None:
    wire, body = sent(
        "ollama",
        base="http://h:1/v1",
        seed=3,
        tools=(TOOL,),
        extra={"options": {"num_ctx": 8192}, "keep_alive": 5},
    )
    assert wire.url == "http://h:1/api/chat"
    assert body["options"] == {"num_ctx": 8192, "num_predict": 50, "seed": 3}
    assert (body["keep_alive"], body["tools"]) == (5, [TOOL])
    assert body["messages"][1]["images"] == ["iVBORw=="]
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"zone": "UTC"}
    assert body["messages"][4]["tool_name"] == "now"
    assert "format" not in body
    assert sent("ollama", response_format=SCHEMA)[1]["format"] == {"type": "object"}
    assert sent("ollama", response_format={"type": "json_object"})[1]["format"] == "json"
    assert "format" not in sent("ollama", response_format={"type": "text"})[1]


def test_gemini() -> None:
    wire, body = sent("gemini", stop=("a",), tools=(TOOL,), tool_choice="none", response_format=SCHEMA)
    assert wire.url == "http://h:1/v1beta/models/m%2Fx%3A1:streamGenerateContent?alt=sse"
    assert wire.headers["x-goog-api-key"] == "k"
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert body["generationConfig"]["responseJsonSchema"] == {"type": "object"}
    assert body["generationConfig"]["maxOutputTokens"] == 50
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert body["contents"][0]["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    assert body["contents"][1]["parts"][0] == {"functionCall": {"name": "now", "args": {"zone": "UTC"}}}
    assert body["contents"][2]["parts"][0]["functionResponse"] == {
        "name": "now",
        "response": {"result": "12:00"},
    }
    chosen = sent("gemini", tool_choice=CHOICE, response_format={"type": "text"})[1]
    assert chosen["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["now"]}
    assert "responseMimeType" not in chosen["generationConfig"]
    assert "systemInstruction" not in sent("gemini", messages=TALK[-1:])[1]


def test_bedrock() -> None:
    wire, body = sent("bedrock", tools=(TOOL,), tool_choice="required", temperature=0.5)
    assert wire.url == "http://h:1/model/m%2Fx%3A1/converse-stream"
    assert wire.headers["authorization"] == "Bearer k"
    assert body["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.5}
    assert body["system"] == [{"text": "Be brief."}]
    assert body["toolConfig"]["toolChoice"] == {"any": {}}
    assert body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"] == {"json": {"type": "object"}}
    assert body["messages"][0]["content"][1] == {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}
    assert [part["toolResult"]["toolUseId"] for part in body["messages"][2]["content"]] == ["c1", "c2"]
    assert sent("bedrock", tools=(TOOL,), tool_choice="auto")[1]["toolConfig"]["toolChoice"] == {"auto": {}}
    assert sent("bedrock", tools=(TOOL,), tool_choice=CHOICE)[1]["toolConfig"]["toolChoice"] == {
        "tool": {"name": "now"}
    }
    assert "toolChoice" not in sent("bedrock", tools=(TOOL,))[1]["toolConfig"]
    assert (
        sent("bedrock", messages=TALK[1:4])[1]["messages"][-1]["content"][0]["toolResult"]["toolUseId"]
        == "c1"
    )
    assert "system" not in sent("bedrock", messages=TALK[-1:])[1]


def test_responses() -> None:
    wire, body = sent("openai-responses", tools=(TOOL,), tool_choice=CHOICE, response_format=SCHEMA)
    assert urlsplit(wire.url).path == "/v1/responses"
    assert (body["max_output_tokens"], body["store"]) == (50, False)
    assert body["tools"] == [{"type": "function", **TOOL["function"]}]  # type: ignore[dict-item]
    assert body["tool_choice"] == {"type": "function", "name": "now"}
    assert body["text"]["format"] == {"type": "json_schema", "name": "s", "schema": {"type": "object"}}
    assert body["input"][1]["content"][1]["type"] == "input_image"
    assert body["input"][2] == {
        "type": "function_call",
        "call_id": "c1",
        "name": "now",
        "arguments": '{"zone":"UTC"}',
    }
    assert body["input"][4] == {"type": "function_call_output", "call_id": "c1", "output": "12:00"}
    assert body["input"][6]["content"][0]["type"] == "output_text"
    assert sent("openai-responses", tool_choice="auto")[1]["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("anthropic", {"seed": 1}),
        ("anthropic", {"response_format": SCHEMA}),
        ("ollama", {"tool_choice": "auto"}),
        ("openai-responses", {"stop": ("x",)}),
        ("bedrock", {"seed": 0}),
        ("mistral", {"seed": 1}),
    ],
)
def test_what_a_kind_cannot_do_is_refused_not_dropped(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match=next(iter(options))) as caught:
        sent(kind, **options)
    assert caught.value.never_sent


@pytest.mark.parametrize("kind", ["anthropic", "ollama", "gemini", "bedrock"])
def test_tool_arguments_that_are_no_object_are_the_callers_fault(kind: str) -> None:
    broken = (Message("assistant", "", tool_calls=(ToolCall("c1", "now", "[1"),)),)
    with pytest.raises(InvalidRequest, match="c1"):
        sent(kind, messages=broken)


@pytest.mark.parametrize(
    ("base", "kind", "path", "expected"),
    [
        ("http://h:1", "vllm", "/models", "http://h:1/v1/models"),
        ("http://h:1/", "vllm", "/models", "http://h:1/v1/models"),
        ("http://h:1/v1", "vllm", "/models", "http://h:1/v1/models"),
        ("http://h:1/llm/v1/", "vllm", "/models", "http://h:1/llm/v1/models"),
        ("https://openrouter.ai/api/v1", "openrouter", "/models", "https://openrouter.ai/api/v1/models"),
        (
            "https://api.perplexity.ai",
            "perplexity",
            "/chat/completions",
            "https://api.perplexity.ai/chat/completions",
        ),
        ("https://x.openai.azure.com", "azure", "/models", "https://x.openai.azure.com/openai/v1/models"),
        ("https://g.example", "gemini", "/models", "https://g.example/v1beta/models"),
        ("http://vault", "vllm", "/models", "http://vault/v1/models"),
    ],
)
def test_a_base_url_may_name_its_version_or_not(base: str, kind: str, path: str, expected: str) -> None:
    assert api_url(Server(kind=kind, base_url=base), kind_of(kind), path) == expected


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("http://h:1", "http://h:1/health"),
        ("http://h:1/v1", "http://h:1/health"),
        ("http://h:1/llm/v1/", "http://h:1/llm/health"),
    ],
)
def test_routes_beside_the_api(base: str, expected: str) -> None:
    assert root_url(Server(kind="vllm", base_url=base), "/health") == expected


def test_headers_carry_the_key_in_the_way_of_the_kind() -> None:
    server = Server(kind="azure", base_url="http://h", api_key="sesame", headers={"X-Title": "t"})
    assert auth_headers(server, kind_of("azure")) == {"api-key": "sesame", "x-title": "t"}
    assert auth_headers(Server(kind="vllm", base_url="http://h"), kind_of("vllm")) == {}
    assert "sesame" not in repr(server)


@pytest.mark.parametrize("alias", ["llama.cpp", " LlamaCpp ", "llama-server", "llamacpp"])
def test_kinds_have_aliases(alias: str) -> None:
    assert kind_of(alias).name == "llamacpp"


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(LookupError, match="llamacpp"):
        kind_of("skynet")


def test_embedding_requests() -> None:
    request = EmbedRequest(model="e", inputs=("a",))
    for name, path in (("llamacpp", "/v1/embeddings"), ("ollama", "/api/embed")):
        kind = kind_of(name)
        wire = adapter_for(kind).embed_request(Server(kind=name, base_url="http://h"), kind, request)
        assert urlsplit(wire.url).path == path
        assert "input_type" not in orjson.loads(wire.body)

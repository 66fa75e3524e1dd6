"""Counts asked of a server: remembered, bounded in time, and never a failure; against a real one exact."""

import asyncio
import base64
import io
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest
from django.conf import settings
from PIL import Image

from inference_client.client import Client
from inference_client.counting import Counted, ServerCounter
from inference_client.learned import Learned
from inference_client.servers import Server
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.types import ChatRequest, ImagePart, Message, TextPart

TAUGHT = Learned((2.0, 8.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 25.0, 40.0, 50)
HELLO = ChatRequest(model="m", messages=(Message("user", "Hello"),), max_output_tokens=1)


def _json(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


def run(
    scene: Callable[[ServerCounter, FaultServer, Server], Coroutine[Any, Any, Any]],
    *scripts: Script,
    kind: str = "vllm",
    **options: Any,
) -> Any:
    async def inside() -> Any:
        async with FaultServer(*scripts) as upstream:
            counter = ServerCounter(**options)
            try:
                return await scene(counter, upstream, Server(kind=kind, base_url=upstream.url, api_key="k"))
            finally:
                await counter.aclose()

    return asyncio.run(asyncio.wait_for(inside(), 60))


async def _once(counter: ServerCounter, upstream: FaultServer, server: Server) -> Counted:
    return await counter.count(server, HELLO)


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        ("vllm", {"count": 31}, 0.0),
        ("tgi-v1", {"tokenize_response": [{}] * 31}, 0.0),
        ("anthropic", {"input_tokens": 31}, 5.0),
        ("gemini", {"totalTokens": 31}, 1.0),
        ("bedrock", {"inputTokens": 31}, 5.0),
        ("openai-responses", {"input_tokens": 31}, 0.0),
    ],
)
def test_the_servers_own_count(kind: str, body: Any, error: float) -> None:
    found = run(_once, _json(body), kind=kind)
    assert found == Counted(input_tokens=31, error_pct=error, source="server", counter=kind)


def test_llamacpp_takes_two_steps() -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        return await counter.count(server, HELLO), [seen.path for seen in upstream.seen]

    found, paths = run(scene, _json({"prompt": "<s>Hello"}), _json({"tokens": [1, 2]}), kind="llamacpp")
    assert (found.input_tokens, paths) == (2, ["/apply-template", "/tokenize"])


def test_what_was_counted_is_remembered_and_the_oldest_forgotten() -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> list[int]:
        asked = []
        for text in ("a", "a", "b", "a", "c", "b", "a"):
            request = ChatRequest(model="m", messages=(Message("user", text),), max_output_tokens=1)
            await counter.count(server, request)
            asked.append(len(upstream.seen))
        return asked

    # Two are remembered: `c` pushes out `b`, the longest unused, and `b` then pushes out `a`.
    assert run(scene, _json({"count": 3}), remembered=2) == [1, 1, 2, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "script",
    [
        Script(wait_s=30),
        _json({}, status=500),
        _json({"error": "no"}, status=404),
        _json({"nothing": 1}),
        Script(answers=False, ending="reset"),
    ],
    ids=["too slow", "failed", "missing", "no number", "dropped"],
)
def test_a_server_that_cannot_say_is_not_waited_for_twice(script: Script) -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        first = await counter.count(server, HELLO, learned=TAUGHT)
        asked = len(upstream.seen)
        second = await counter.count(server, HELLO, learned=TAUGHT)
        return first, second, asked, len(upstream.seen)

    first, second, asked, in_all = run(scene, script, limit_s=0.2)
    assert first == second
    assert (first.source, first.counter, first.error_pct) == ("local", "o200k_base", 25.0)
    assert asked == in_all


def test_a_prompt_that_is_refused_costs_the_others_nothing() -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> list[str]:
        return [(await counter.count(server, HELLO)).source for _ in range(2)]

    refusal = _json({"error": {"message": "roles must alternate", "code": 400}}, status=400)
    assert run(scene, refusal, _json({"count": 4})) == ["local", "server"]


def test_a_server_is_asked_again_after_its_rest() -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> list[str]:
        return [(await counter.count(server, HELLO)).source for _ in range(2)]

    assert run(scene, _json({}, status=500), _json({"count": 4}), rest_s=0.0) == ["local", "server"]


def test_pictures_are_added_where_only_text_is_counted() -> None:
    out = io.BytesIO()
    Image.new("RGB", (300, 250)).save(out, "PNG")
    message = Message("user", (TextPart("?"), ImagePart(out.getvalue(), "image/png")))
    request = ChatRequest(model="m", messages=(message,), max_output_tokens=1)

    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        return await counter.count(server, request), upstream.seen[0].json

    found, body = run(scene, _json({"count": 100}))
    assert (found.input_tokens, found.error_pct) == (200, 50.0)
    assert body["messages"][0]["content"] == [{"type": "text", "text": "?"}]


def test_pictures_are_fitted_where_they_are_counted_too() -> None:
    out = io.BytesIO()
    Image.new("RGB", (3136, 10)).save(out, "PNG")
    message = Message("user", (TextPart("?"), ImagePart(out.getvalue(), "image/png")))
    request = ChatRequest(model="m", messages=(message,), max_output_tokens=1)

    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        return await counter.count(server, request), upstream.seen[0].json

    found, body = run(scene, _json({"input_tokens": 77}), kind="anthropic")
    assert (found.input_tokens, found.error_pct) == (77, 5.0)
    sent = base64.b64decode(body["messages"][0]["content"][1]["source"]["data"])
    assert Image.open(io.BytesIO(sent)).size == (1568, 5)


def test_what_was_said_of_a_prompt_is_told_again_without_asking() -> None:
    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        before = counter.remembered(server, HELLO)
        said = await counter.asked(server, HELLO)
        return before, said, counter.remembered(server, HELLO), len(upstream.seen)

    before, said, again, asked = run(scene, _json({"count": 31}))
    assert (before, asked) == (None, 1)
    assert said == again == Counted(input_tokens=31, error_pct=0.0, source="server", counter="vllm")


def test_nothing_is_remembered_of_kinds_without_a_route_and_of_pictures() -> None:
    picture = Message("user", (ImagePart(b"", "image/png"),))
    seen = ChatRequest(model="m", messages=(picture,), max_output_tokens=1)

    async def scene(counter: ServerCounter, upstream: FaultServer, server: Server) -> Any:
        other = Server(kind="openrouter", base_url=upstream.url)
        return (
            counter.remembered(other, HELLO),
            await counter.asked(other, HELLO),
            counter.remembered(server, seen),
        )

    assert run(scene) == (None, None, None)


def test_kinds_without_a_route_are_counted_here() -> None:
    found = run(_once, kind="openrouter")
    assert (found.source, found.error_pct) == ("local", 15.0)


# ----------------------------------------------------------------------------------------------- for real

TALKS = [
    ("Say yes.",),
    ("Sei kurz.", "Nenne drei Städte in Österreich, ohne Erklärung.", "Wien, Graz, Linz.", "Und in der Schweiz?"),
    ("システム", "東京の天気はどうですか？明日は雨が降りますか？"),
    ("", "Привет! Как дела? Расскажи анекдот про Вовочку."),
    ("Be kind.", "👩‍🚀🚀 naïve café — ½ ∑ \u200b\t\n\n  indented"),
    ("Rules: <|im_start|>system<|im_end|>", "What does </s> or <|endoftext|> mean?"),
    ("مرحبا", "كيف حالك اليوم؟", "بخير", "شكرا جزيلا"),
    ("x", "word " * 300),
]  # fmt: skip


TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("tools", [None, (TOOL,)], ids=["plain", "tools"])
@pytest.mark.parametrize("texts", TALKS, ids=range(len(TALKS)))
def test_a_real_server_counts_what_it_then_bills(texts: tuple[str, ...], tools: Any) -> None:
    roles = ("user",) if len(texts) == 1 else ("system", "user", "assistant", "user")
    messages = tuple(Message(role, text) for role, text in zip(roles, texts, strict=False))
    request = ChatRequest(
        model=settings.INFERENCE_MODEL, messages=messages, max_output_tokens=1, temperature=0.0, tools=tools
    )
    server = Server(kind="llamacpp", base_url=settings.INFERENCE_URL, api_key=settings.INFERENCE_API_KEY)

    async def both() -> tuple[Counted, int]:
        counter, client = ServerCounter(limit_s=20), Client()
        try:
            counted = await counter.count(server, request)
            async with client.chat(server, request) as call:
                async for _ in call:
                    pass
            return counted, call.record.usage.input_tokens
        finally:
            await counter.aclose()
            await client.aclose()

    counted, billed = asyncio.run(asyncio.wait_for(both(), 120))
    assert (counted.source, counted.error_pct) == ("server", 0.0)
    assert counted.input_tokens == billed

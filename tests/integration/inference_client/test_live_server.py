"""A real llama.cpp server, by its OpenAI-shaped, Anthropic-shaped and Responses routes. No words are asserted."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from django.conf import settings

from inference_client import errors
from inference_client.adapters.kinds import KINDS
from inference_client.client import Client
from inference_client.probe import probe
from inference_client.servers import Server
from inference_client.types import CallRecord, ChatRequest, EmbedRequest, Message

LIVE = tuple(kind.name for kind in KINDS.values() if kind.grade == "supported")
"""What is graded so is asked here; there is no other way to the grade."""
PROMPT = (Message("system", "You are brief."), Message("user", "Count from one to one hundred in words."))


def server(kind: str = "llamacpp") -> Server:
    return Server(kind=kind, base_url=settings.INFERENCE_URL, api_key=settings.INFERENCE_API_KEY)


def request(**options: Any) -> ChatRequest:
    given: dict[str, Any] = {"model": settings.INFERENCE_MODEL, "messages": PROMPT, "max_output_tokens": 12}
    return ChatRequest(**(given | options))


def run(scene: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    async def inside() -> Any:
        client = Client()
        try:
            return await scene(client)
        finally:
            await client.aclose()

    return asyncio.run(asyncio.wait_for(inside(), 120))


async def _read(client: Client, kind: str, **options: Any) -> tuple[str, CallRecord]:
    async with client.chat(server(kind), request(**options)) as call:
        text = "".join([getattr(event, "text", "") async for event in call])
    return text, call.record


@pytest.mark.parametrize("kind", LIVE)
def test_an_answer_with_its_numbers(kind: str) -> None:
    text, record = run(lambda client: _read(client, kind, temperature=0.0))
    assert text
    assert (record.outcome, record.estimated, record.error) == ("completed", False, None)
    assert record.finish_reason in {"stop", "length"}
    assert record.usage.input_tokens is not None
    assert record.usage.input_tokens > 10
    assert record.usage.output_tokens is not None
    assert 0 < record.usage.output_tokens <= 12
    assert record.timing.first_token_s is not None
    assert record.output_chars == len(text)


def test_all_routes_count_the_same_prompt_alike() -> None:
    async def scene(client: Client) -> set[int | None]:
        return {(await _read(client, kind))[1].usage.input_tokens for kind in LIVE}

    assert len(run(scene)) == 1


async def _running() -> float:
    return (await probe(settings.INFERENCE_URL, settings.INFERENCE_API_KEY)).metrics["running"]


async def _produced() -> float:
    return (await probe(settings.INFERENCE_URL, settings.INFERENCE_API_KEY)).metrics["output_tokens_total"]


@pytest.mark.parametrize("kind", LIVE)
def test_leaving_frees_the_server(kind: str) -> None:
    """The slot is free again, and nearly all of the 1,500 tokens that were asked for were never made."""

    async def scene(client: Client) -> tuple[CallRecord, float]:
        before = await _produced()
        long = request(max_output_tokens=1500, extra={"ignore_eos": True} if kind == "llamacpp" else {})
        async with client.chat(server(kind), long) as call:
            await anext(call)
        async with asyncio.timeout(20):
            while await _running():  # noqa: ASYNC110 - a server elsewhere is watched
                await asyncio.sleep(0.02)
        return call.record, await _produced() - before

    record, produced = run(scene)
    # llama.cpp tells its count with every piece of its own route.
    assert (record.outcome, record.estimated) == ("stopped", kind != "llamacpp")
    assert produced < 500


def test_a_prompt_over_the_window_names_both_numbers() -> None:
    with pytest.raises(errors.ContextTooLong) as caught:
        run(lambda client: _read(client, "llamacpp", messages=(Message("user", "word " * 9000),)))
    assert caught.value.input_tokens is not None
    assert caught.value.context_window is not None
    assert caught.value.input_tokens > caught.value.context_window


def test_a_wrong_key_is_told() -> None:
    async def scene(client: Client) -> None:
        wrong = Server(kind="llamacpp", base_url=settings.INFERENCE_URL, api_key="wrong")
        async with client.chat(wrong, request()) as call:
            await anext(call)

    with pytest.raises(errors.BadAuth):
        run(scene)


def test_a_server_that_makes_no_embeddings_says_so() -> None:
    async def scene(client: Client) -> None:
        await client.embed(server(), EmbedRequest(model=settings.INFERENCE_MODEL, inputs=("a",)))

    with pytest.raises(errors.InferenceError):
        run(scene)


def test_what_a_probe_finds() -> None:
    facts = asyncio.run(probe(settings.INFERENCE_URL, settings.INFERENCE_API_KEY))
    assert (facts.kind, facts.reachable, facts.healthy, facts.counts_tokens) == ("llamacpp", True, True, True)
    assert facts.models[0].context_window is not None
    assert facts.problem is None


def test_embeddings_of_the_embedder() -> None:
    async def scene(client: Client) -> Any:
        embedder = Server(kind="openai", base_url=settings.EMBEDDING_URL, api_key=settings.EMBEDDING_API_KEY)
        wanted = EmbedRequest(model=settings.EMBEDDING_MODEL, inputs=("one", "two"), input_type="query")
        return await client.embed(embedder, wanted)

    found = run(scene)
    assert [len(vector) for vector in found.vectors] == [settings.EMBEDDING_DIMENSION] * 2
    assert found.usage.state == "reported"

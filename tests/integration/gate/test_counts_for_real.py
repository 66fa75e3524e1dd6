"""Our count against the llama.cpp server's own figure, on real prompts."""

import asyncio
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.selectors import Target
from app.gate.clients import client, client_close, server_of
from app.gate.counting import prompt_asked, prompt_remembered, prompt_sent
from inference_client.learned import UNLEARNED, Facts, learned_from
from inference_client.types import ChatRequest, Message
from tests.integration.gate.prompts import needed, prompts

pytestmark = [pytest.mark.django_db, needed]


def request(target: Target, messages: Sequence[Message]) -> ChatRequest:
    return ChatRequest(model=target.upstream_model, messages=tuple(messages), max_output_tokens=1)


def facts(target: Target, messages: Sequence[Message]) -> Facts:
    return prompt_sent(target, request(target, messages)).facts


def run(scene: Any) -> Any:
    async def inside() -> Any:
        try:
            return await scene
        finally:
            await client_close()

    return asyncio.run(asyncio.wait_for(inside(), 1800))


async def counted(target: Target, found: Sequence[Sequence[Message]]) -> list[int]:
    counts = [await prompt_asked(target, messages, {}) for messages in found]
    assert all(c is not None and (c.source, c.error_pct) == ("server", 0.0) for c in counts)
    return [c.input_tokens for c in counts if c is not None]


async def billed(target: Target, found: Sequence[Sequence[Message]]) -> list[int]:
    figures = []
    for messages in found:
        async with client().chat(server_of(target), request(target, messages)) as call:
            async for _ in call:
                pass
        figures.append(call.record.usage.input_tokens or 0)
    return figures


def errors(
    target: Target, taught: int, found: Sequence[Sequence[Message]], told: Sequence[int]
) -> list[float]:
    """Percent that our count of the later prompts is off, after the first `taught` of them."""
    pairs = [(facts(target, messages), figure) for messages, figure in zip(found, told, strict=True)]
    learned = learned_from(pairs[:taught])
    off = [(learned.expected(seen) / figure - 1) * 100 for seen, figure in pairs[taught:]]
    inside = sum(
        abs(pct) <= learned.error_pct(seen) for pct, (seen, _) in zip(off, pairs[taught:], strict=True)
    )
    # The band is said to hold for 19 of 20; that of so few prompts may miss one or two more.
    assert inside / len(off) >= 0.9
    return [abs(pct) for pct in off]


def test_a_count_that_was_taught_is_within_two_percent(chat_target: Target) -> None:
    found = prompts(70)
    told = run(counted(chat_target, found))
    untaught = [
        abs(UNLEARNED.expected(facts(chat_target, messages)) / figure - 1) * 100
        for messages, figure in zip(found[50:], told[50:], strict=True)
    ]
    off = errors(chat_target, 50, found, told)
    assert statistics.mean(off) <= 2.0
    assert statistics.mean(untaught) > 2 * statistics.mean(off)


def test_a_long_conversation_is_not_sent_again_at_every_word(chat_target: Target) -> None:
    history = [m for messages in prompts(8, documents=1) for m in messages if m.role != "system"]
    before = (Message("system", "Be kind."), *history[:-1])
    while sum(len(m.content) for m in before) < 12_000:
        before = (*before, *before[1:])

    async def scene() -> tuple[int, int, Any]:
        drafts = ["Why", "Why is", "Why is the sea blue?"]
        apart = [await prompt_asked(chat_target, (*before, Message("user", text)), {}) for text in drafts]
        # A mark at the end makes the last message no user's, so this one is counted as a whole.
        whole = await prompt_asked(
            chat_target, (*before, Message("user", drafts[-1]), Message("assistant", "")), {}
        )
        alone = await prompt_asked(chat_target, (Message("user", "?"), Message("assistant", "")), {})
        bare = await prompt_asked(chat_target, (Message("user", "?"),), {})
        assert apart[-1] is not None and whole is not None and alone is not None and bare is not None
        known = prompt_remembered(chat_target, (*before, Message("user", drafts[-1])), {})
        return apart[-1].input_tokens, whole.input_tokens - (alone.input_tokens - bare.input_tokens), known

    apart, whole, known = run(scene())
    assert apart == whole
    assert known is not None
    assert known.input_tokens == apart


def test_a_server_that_cannot_count_or_is_away_says_nothing(chat_target: Target) -> None:
    hello = (Message("user", "Hello"),)

    async def scene() -> list[Any]:
        others = (
            replace(chat_target, base_url="http://127.0.0.1:9/v1"),
            replace(chat_target, kind="ollama-v1"),
            replace(chat_target, kind="no-such-kind"),
        )
        return [f(target) for target in others for f in (lambda t: prompt_remembered(t, hello, {}),)] + [
            await prompt_asked(target, hello, {}) for target in others
        ]

    assert run(scene()) == [None] * 6


@pytest.mark.prove
def test_two_hundred_real_prompts(chat_target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    # Short ones: a server without a GPU has to read them all.
    found = prompts(200, documents=1, longest=400)

    async def scene() -> tuple[list[int], list[int]]:
        return await counted(chat_target, found), await billed(chat_target, found)

    ours, told = run(scene())
    off = errors(chat_target, 100, found, told)
    exact = sum(a != b for a, b in zip(ours, told, strict=True))
    with capsys.disabled():
        sys.stdout.write(
            f"\n200 prompts, {sum(told):,} tokens by the server's figure: its own route off in {exact}; "
            f"o200k_base taught by 100, on the other 100: mean {statistics.mean(off):.2f} %, "
            f"median {statistics.median(off):.2f} %, 95th {sorted(off)[94]:.2f} %, most {max(off):.2f} %\n"
        )
    assert ours == told
    assert statistics.mean(off) <= 2.0

"""What a `/v1` call is counted and held for: everything that is sent, each thing once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.accounts.selectors import Caller
from app.catalog.selectors import Target
from app.chat import planning, prompting
from app.chat.planning import estimate_of
from app.chat.types import Ask, Options
from app.common.errors import InvalidInput
from app.common.models import uuid7
from app.gate import counting
from inference_client.tokens import counter
from inference_client.types import ImagePart, Message, TextPart, ToolCall
from retrieval.types import Prompt, PromptMessage

WORDS = "The quick brown fox jumps over the lazy dog. " * 20
TOKENS = counter("o200k_base").count(WORDS)

TARGET = Target(
    deployment_id=uuid7(), public_name="m", upstream_model="gpt-4o", price_key="chat/m", context_window=128_000,
    max_output_tokens=1024, clearance="private", tokenizer="o200k_base", abort_stops_billing=True, slots=1,
    is_demonstration=False, kind="openai", base_url="http://127.0.0.1:1", api_key="", leaves_premises=False,
    backend_name="b", region="",
)  # fmt: skip
CALLER = Caller(
    user_id=None, account_id=None, key_id=None, default_team_id=uuid7(), roles=(), scopes=frozenset(),
    models_allowed=None, is_staff=False,
)  # fmt: skip


def ask(*messages: Message, **fields: Any) -> Ask:
    return Ask(
        turn_id=uuid7(), request_id="", caller=CALLER, team_id=CALLER.default_team_id, team_name="", targets=(TARGET,),
        question=messages[-1].content if messages[-1].role == "user" else "Well?", messages=messages, **fields,
    )  # fmt: skip


USER = Message(role="user", content=WORDS)


@pytest.mark.parametrize("times", [1, 2, 50])
def test_the_same_message_again_is_counted_again(times: int) -> None:
    assert estimate_of(ask(*[USER] * times)).total_max >= times * TOKENS


@pytest.mark.parametrize(
    "more",
    [
        {"options": Options(tools=({"type": "function", "function": {"name": "f", "description": WORDS}},))},
        {"options": Options(response_format={"type": "json_schema", "json_schema": {"description": WORDS}})},
    ],
    ids=["tools", "schema"],
)
def test_what_goes_along_beside_the_messages_is_counted(more: Mapping[str, Any]) -> None:
    assert estimate_of(ask(USER, **more)).total_max >= 2 * TOKENS


def test_tool_calls_are_counted() -> None:
    called = Message(role="assistant", tool_calls=(ToolCall("c", "f", WORDS),))
    assert estimate_of(ask(USER, called, USER)).total_max >= 3 * TOKENS


def test_many_short_messages_cost_their_template_marks() -> None:
    short = [Message(role="user", content="a")] * 1000
    assert estimate_of(ask(*short)).total_max >= 5000


def test_stitching_gets_only_the_room_that_the_callers_own_messages_leave() -> None:
    alone = estimate_of(ask(USER, collections=(uuid7(),)))
    beside = estimate_of(ask(Message(role="system", content=WORDS), USER, collections=(uuid7(),)))
    assert beside.total_max - beside.given == alone.total_max


def test_counting_keeps_nobodys_words() -> None:
    secret = "s3cret words " * 100
    estimate_of(replace(ask(USER), messages=None, question=secret))
    assert counting._known
    assert not any(secret.strip() in repr(entry) for entry in counting._known.items())


def test_what_is_too_long_to_ask_is_not_even_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "text_facts", lambda tokenizer, text: pytest.fail("counted"))
    with pytest.raises(InvalidInput, match="400,000 is the most"):
        estimate_of(replace(ask(USER), question="x" * 400_001))


def test_pictures_stay_with_a_question_that_is_searched_for() -> None:
    picture = ImagePart(b"x", "image/png")
    asked = Message(role="user", content=(TextPart("What is this?"), picture))
    later = Message(role="assistant", content="Let me see.")
    stitched = Prompt((PromptMessage("system", "S"), PromptMessage("user", "Passages. What is this?")), (), 0)
    sent = prompting.outgoing(replace(ask(asked), messages=(asked, later), collections=(uuid7(),)), stitched)
    assert [m.role for m in sent] == ["system", "user", "assistant"]
    assert sent[1].content == (TextPart("Passages. What is this?"), picture)

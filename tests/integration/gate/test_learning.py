"""What the servers say of prompts, beside our own count: stored with each call, learned from, and alarmed at."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.accounts.models import Team, User
from app.accounts.selectors import Caller
from app.billing.attempts import call_times, calls_counted, drift, first_token_times
from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer
from app.catalog.models import Deployment, TokenFit
from app.catalog.selectors import Target, targets_named
from app.chat.asking import ask_in_conversation
from app.chat.models import Turn
from app.chat.selectors import passages_usual
from app.common.clock import now
from app.common.models import uuid7
from app.gate.learning import counts_learn
from inference_client.learned import UNLEARNED, Facts
from tests.factories import collection_make, conversation_make, passage_make, turn_make
from tests.integration.chat.upstream import answered, said

pytestmark = pytest.mark.django_db

WEIGHTS = (1.1, 6.0, 5.0, 0.5, 0.0, 0.2, *(0.0,) * 9)


@pytest.fixture
def call(chat_target: Target, team: Team) -> Callable[..., UUID]:
    """Book a call whose prompt we counted and the server told of."""

    def book(
        facts: Facts | None, told: int, *, local: int = 0, flags: tuple[str, ...] = (), **more: Any
    ) -> UUID:
        hold = Hold(
            reservation_id=uuid7(), payer=Payer(team_id=team.id), kind="chat", price_key=chat_target.price_key,
            input_tokens=9000, output_tokens=10, deployment_id=chat_target.deployment_id,
        )  # fmt: skip
        attempt = Attempt(
            buckets=Buckets(input=told, output=2),
            tokenizer=chat_target.tokenizer,
            local_input_tokens=local or (facts.tokens if facts else 1),
            prompt_facts=tuple(facts) if facts else None,
            flags=flags,
            **more,
        )
        reservation_hold(hold=hold)
        reservation_settle(reservation_id=hold.reservation_id, attempts=(attempt,), hold=hold)
        return hold.reservation_id

    return book


def facts(size: int) -> Facts:
    return Facts(
        size, 1 + size % 5, 1, (size * 7) % (size // 8), size // 20, (size * 3) % (size // 9), size * 3 // 4
    )


def told(of: Facts) -> int:
    return round(sum(weight * value for weight, value in zip(WEIGHTS, of, strict=True)))


def test_every_process_counts_as_the_last_calls_taught(
    chat_target: Target, call: Callable[..., UUID]
) -> None:
    assert chat_target.learned == UNLEARNED
    for size in range(200, 1400, 30):
        call(facts(size), told(facts(size)))
    # A cut prompt and one with pictures would teach nonsense.
    for size in range(300, 1300, 100):
        call(facts(size), 40, flags=("input_short",))
        call(None, 9000)
    assert counts_learn() == [chat_target.deployment_id]
    learned = targets_named(chat_target.public_name)[0].learned
    assert learned.n == 40
    assert max(abs(learned.expected(facts(s)) / told(facts(s)) - 1) for s in range(250, 1300, 77)) < 0.02
    assert 0 < learned.plain_pct < 3
    assert counts_learn() == []
    call(facts(400), told(facts(400)))
    assert counts_learn() == [chat_target.deployment_id]


def test_another_tokenizer_begins_anew(chat_target: Target, call: Callable[..., UUID]) -> None:
    for size in range(200, 1400, 50):
        call(facts(size), told(facts(size)))
    counts_learn()
    Deployment.objects.filter(id=chat_target.deployment_id).update(tokenizer="cl100k_base")
    assert targets_named(chat_target.public_name)[0].learned == UNLEARNED


def test_drift_is_told_by_call_and_by_day(chat_target: Target, call: Callable[..., UUID]) -> None:
    for local, server in ((100, 90), (100, 110), (100, 130)):
        call(None, server, local=local)
    call(None, 10, local=100, flags=("input_short",))
    found = calls_counted(chat_target.deployment_id)
    assert [round(c.off_pct) for c in found] == [-90, 30, 10, -10]
    (day,) = drift(chat_target.deployment_id, since=now() - timedelta(hours=1))
    assert (day["calls"], day["short"], round(day["p50"])) == (4, 1, 0)
    assert drift(chat_target.deployment_id, since=now() + timedelta(hours=1)) == []


def test_times_of_every_call_are_stored(chat_target: Target, call: Callable[..., UUID]) -> None:
    assert first_token_times(chat_target.deployment_id) is None
    for ttft in (100, 200, 300):
        call(None, 10, ttft_ms=ttft, total_ms=1000, queue_ms=ttft // 10, itl_ms=12.5)
    assert first_token_times(chat_target.deployment_id) == (200, 290)
    (minute,) = call_times(chat_target.deployment_id, since=now() - timedelta(hours=1), step="day")
    assert (minute["calls"], minute["ttft_ms"], minute["queue_ms"]) == (3, (200, 290), (20, 29))
    assert (minute["itl_ms"], minute["total_ms"]) == ((12.5, 12.5), (1000, 1000))


def test_what_a_search_usually_takes_is_the_middle_of_the_last_turns(user: User, team: Team) -> None:
    passages_usual.forget()
    collection = collection_make(team=team, user=user)
    conversation = conversation_make(user=user, team=team)
    for size in (400, 800, 1200, 1600):
        passage_make(turn=turn_make(conversation=conversation), collection=collection, text="x" * size)
    assert passages_usual((collection.pk,)) is None
    passages_usual.forget()
    passage_make(turn=turn_make(conversation=conversation), collection=collection, text="x" * 2000)
    assert passages_usual((collection.pk,)) == 300 + 30
    assert passages_usual((uuid7(),)) is None


def turned(caller: Caller, team: Team, target: Target, prompt_tokens: int, text: str) -> Any:
    conversation = conversation_make(user=caller.user_id and team.memberships.first().user, team=team)
    ask = ask_in_conversation(
        caller=caller, conversation_id=conversation.id, turn_id=uuid7(), request_id="r", text=text
    )
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    return answered(replace(ask, targets=(replace(target, is_demonstration=False),)), said("ok", usage))


def test_a_server_that_cuts_prompts_in_silence_is_told_of(
    caller: Caller, team: Team, chat_target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    taken = turned(caller, team, chat_target, 200, "Tell me of the sea. " * 150)
    (notice,) = [n for n in taken.named("notice") if n["code"] == "prompt_cut"]
    assert notice["read"] == 200
    assert notice["sent"] > 700
    assert notice in Turn.objects.get(id=taken.ask.turn_id).notices
    assert "fewer tokens than were sent" in caplog.text
    counts_learn()
    fit = TokenFit.objects.get(deployment_id=chat_target.deployment_id)
    assert (fit.short_read, fit.short_sent) == (200, notice["sent"])
    assert fit.short_at is not None


def test_a_server_within_the_band_is_not_accused(caller: Caller, team: Team, chat_target: Target) -> None:
    taken = turned(caller, team, chat_target, 700, "Tell me of the sea. " * 150)
    assert not [n for n in taken.named("notice") if n["code"] == "prompt_cut"]
    (seen,) = calls_counted(chat_target.deployment_id)
    assert (seen.told, seen.turn_id, seen.flags) == (700, taken.ask.turn_id, ())
    assert seen.facts is not None
    assert seen.facts[1:3] == (2, 1)

"""A server that fails is left alone for a while, others answer in its place, and what cost nothing is sent again."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from app.billing.models import Reservation, UsageAttempt
from app.billing.types import Payer
from app.catalog.models import Backend, Deployment
from app.catalog.selectors import Target, targets
from app.chat.models import Turn
from app.chat.runs import Runs
from app.chat.turn import take_turn
from app.common.errors import AppError, PartFailed
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate import health, retrying
from app.gate.admission import Admission
from app.gate.clients import client_close
from app.gate.embedding import embed, embed_plain, embedding_target
from app.gate.health import ServerResting
from app.gate.limiter import outstanding
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.breaker import Breaker, BreakerLimits
from inference_client.errors import InferenceError, Unreachable, UpstreamMoneyExhausted
from inference_client.retry import Retry
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.types import Message, TextDelta
from tests.integration.chat.conftest import take
from tests.integration.chat.upstream import answered, said
from tests.integration.inference_client.scenes import until

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY = "http://127.0.0.1:9/v1"
HELLO = [Message(role="user", content="Hello")]
LIMIT = BreakerLimits().failures


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "RETRY", Retry(base_s=0.001))


@pytest.fixture
def chat(servers: None) -> Target:
    return targets(Deployment.Purpose.CHAT.value)[0]


def at(target: Target, url: str, name: str = "") -> Target:
    return replace(target, kind="openai", base_url=url, backend_name=name or target.backend_name)


async def asked(payer: Payer, *deployments: Target) -> tuple[str, Admission, Exception | None]:
    """(text, what was noted, how it failed) of one call."""
    admission = await reserve(
        CallPlan(
            reservation_id=uuid7(),
            payer=payer,
            kind="chat",
            targets=deployments,
            input_tokens=50,
            output_tokens=20,
        )
    )
    text, failure = "", None
    try:
        async for batch in admission.infer(HELLO):
            text += "".join(event.text for event in batch if isinstance(event, TextDelta))
    except (InferenceError, AppError) as exc:
        failure = exc
    finally:
        await admission.end()
    return text, admission, failure


def told(story: Callable[[FaultServer], Any], *scripts: Script) -> Any:
    async def whole() -> Any:
        async with FaultServer(*scripts) as server:
            try:
                return await story(server)
            finally:
                await client_close()

    return async_to_sync(whole)()


def errors(admission: Admission) -> list[str]:
    return [attempt.error for attempt in admission.attempts]


def test_a_dead_server_is_tried_a_few_times_and_then_left_alone(chat: Target, team: Any) -> None:
    async def story(server: FaultServer) -> list[list[str]]:
        dead, alive = at(chat, NOBODY, "dead"), at(chat, f"{server.url}/v1", "alive")
        found = [await asked(Payer(team_id=team.id), dead, alive) for _ in range(LIMIT + 2)]
        assert {text for text, _, _ in found} == {"ok"}
        return [errors(admission) for _, admission, _ in found]

    tried = told(story, said("ok"))
    assert tried == [["Unreachable", ""]] * LIMIT + [[""]] * 2
    failed = UsageAttempt.objects.filter(error="Unreachable")
    assert failed.count() == LIMIT
    assert {(row.kind, row.billed, row.input_tokens) for row in failed} == {("chat", False, 0)}


def test_when_no_server_is_left_the_refusal_says_which_and_when(chat: Target, team: Any) -> None:
    async def story(server: FaultServer) -> tuple[list[str], Exception | None]:
        dead = at(chat, NOBODY, "dead")
        while health.health_of(dead).state == "closed":
            await asked(Payer(team_id=team.id), dead)
        _, admission, failure = await asked(Payer(team_id=team.id), dead)
        return errors(admission), failure

    tried, failure = told(story)
    assert tried == []
    assert isinstance(failure, ServerResting)
    assert (failure.status, failure.name, failure.retryable) == (503, "chat_server_failed", True)
    assert failure.detail == {"part": "chat server", "servers": ["dead"], "state": "open"}
    assert 1 <= failure.retry_after <= 5
    assert "dead (chat server)" in failure.message
    assert Reservation.objects.order_by("-id")[0].state == "released"


def test_after_its_pause_one_call_finds_out_and_opens_the_way_for_all(
    chat: Target, team: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "Breaker", lambda: Breaker(BreakerLimits(failures=1, pause_s=0.05)))

    async def story(server: FaultServer) -> list[str]:
        target, payer = at(chat, f"{server.url}/v1"), Payer(team_id=team.id)
        states = []
        for wait in (0.0, 0.1, 0.0):
            await asyncio.sleep(wait)
            states.append(health.health_of(target).state)
            await asked(payer, target)
        return [*states, health.health_of(target).state, str(len(server.seen))]

    fault = Script(status=500, content_type="application/json", body=(b'{"error": {"message": "x"}}',))
    assert told(story, fault, said("ok")) == ["closed", "half-open", "closed", "closed", "3"]


def test_a_trial_that_its_reader_leaves_lets_the_next_one_try(
    chat: Target, team: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "Breaker", lambda: Breaker(BreakerLimits(failures=1, pause_s=0.0)))

    async def story(server: FaultServer) -> str:
        target, payer = at(chat, f"{server.url}/v1"), Payer(team_id=team.id)
        await asked(payer, target)
        leaving = asyncio.ensure_future(asked(payer, target))
        await until(lambda: len(server.seen) == 2)
        leaving.cancel()
        await asyncio.wait([leaving])
        text, _, _ = await asked(payer, target)
        return text

    fault = Script(status=500, content_type="application/json", body=(b'{"error": {"message": "x"}}',))
    assert told(story, fault, Script(wait_s=30), said("ok")) == "ok"


def refusal(status: int, code: str = "no", **headers: str) -> Script:
    body = b'{"error": {"message": "no", "code": "%s"}}' % code.encode()
    return Script(status=status, headers=headers, content_type="application/json", body=(body,))


@pytest.mark.parametrize(
    ("first", "sendings", "text"),
    [
        (refusal(429, **{"retry-after": "0"}), 2, "ok"),
        (refusal(503), 2, "ok"),
        (refusal(429, **{"retry-after": "60"}), 1, ""),
        (refusal(500), 1, ""),
        (refusal(400), 1, ""),
        (refusal(429, "insufficient_quota"), 1, ""),
        (Script(answers=False), 1, ""),
    ],
    ids=["throttled", "overloaded", "throttled for long", "fault", "invalid", "no money", "dropped"],
)
def test_only_what_certainly_cost_nothing_is_sent_again(
    chat: Target, team: Any, first: Script, sendings: int, text: str
) -> None:
    async def story(server: FaultServer) -> tuple[str, int, Exception | None]:
        said_, admission, failure = await asked(Payer(team_id=team.id), at(chat, f"{server.url}/v1"))
        assert len(server.seen) == len(admission.attempts)
        return said_, len(admission.attempts), failure

    got, count, failure = told(story, first, said("ok"))
    assert (got, count) == (text, sendings)
    assert UsageAttempt.objects.filter(kind="chat").count() == sendings
    if "quota" in str(first.body):
        assert isinstance(failure, UpstreamMoneyExhausted)


def test_time_in_line_is_its_own_stage_and_the_parts_add_up(gather: Callable[..., Any], team: Any) -> None:
    taken = answered(gather("Say"), said("ab"))
    timing = Turn.objects.get(id=taken.ask.turn_id).timing
    parts = [v for k, v in timing.items() if k.endswith("_ms") and k not in ("total_ms", "ttft_ms")]
    assert timing["gate_wait_ms"] >= 0
    assert sum(parts) == pytest.approx(timing["total_ms"], abs=0.2)


def test_a_turn_whose_server_is_left_alone_says_so(gather: Callable[..., Any], chat: Target) -> None:
    ask = gather("Say")
    dead = at(ask.targets[0], NOBODY, "dead")
    for _ in range(LIMIT):
        health.failed(dead, Unreachable())
    taken = take(replace(ask, targets=(dead,)))
    error = taken.named("error")[0]
    assert (error["code"], error["retryable"], error["detail"]["servers"]) == (
        "chat_server_failed",
        True,
        ["dead"],
    )
    assert error["retry_after"] >= 1
    assert UsageAttempt.objects.filter(kind="chat").count() == 0


def test_a_dead_embedder_is_left_alone_too(servers: None, team: Any) -> None:
    dead = at(targets(Deployment.Purpose.EMBEDDING.value)[0], NOBODY, "dead")

    async def story(server: FaultServer) -> list[str]:
        messages = []
        for _ in range(LIMIT + 1):
            with pytest.raises(PartFailed) as caught:
                await embed_plain(dead, ["text"], payer=Payer(team_id=team.id))
            assert caught.value.name == "embedder_unavailable"
            messages.append(caught.value.message)
        return messages

    assert "is left alone" in told(story)[-1]
    assert UsageAttempt.objects.filter(kind="embedding").count() == LIMIT


def test_who_waits_in_line_is_told_so_and_when_it_is_over(
    gather: Callable[..., Any], chat: Target, team: Any
) -> None:
    ask = gather("Say")

    async def story(server: FaultServer) -> list[str]:
        target = replace(at(chat, f"{server.url}/v1"), slots=1)
        first = asyncio.ensure_future(asked(Payer(team_id=team.id), target))
        await until(lambda: outstanding(target.deployment_id) > 0)
        turn = replace(ask, targets=(target,))
        run = Runs().start(turn.turn_id, lambda run: take_turn(turn, run), replayable=False)
        seen: list[int | None] = []
        emit = run.log.emit

        def noted(name: str, data: Mapping[str, Any]) -> None:
            if name == "status":
                seen.append(run.input_tokens)
            emit(name, data)

        run.log.emit = noted  # type: ignore[method-assign]
        assert run.task is not None
        await asyncio.gather(first, run.task)
        await redis_close()
        sent = [count is not None for count in seen]
        assert sent == [True, False, True, True], "a call that waits in line was not sent"
        return [event.data["phase"] for event in run.log.events if event.name == "status"]

    slow = replace(said("ok"), wait_s=0.5)
    assert told(story, slow, said("ok")) == ["waiting", "queued", "waiting", "generating"]


def test_two_teams_take_turns_at_a_server_with_one_slot(chat: Target, team: Any, caller: Any) -> None:
    teams = {"greedy": Payer(team_id=team.id), "other": Payer(team_id=None)}

    async def story(server: FaultServer) -> tuple[list[str], list[bool]]:
        target = replace(at(chat, f"{server.url}/v1"), slots=1)

        async def call(name: str) -> bool:
            plan = CallPlan(
                reservation_id=uuid7(),
                payer=teams[name],
                kind="chat",
                targets=(target,),
                input_tokens=50,
                output_tokens=20,
            )
            admission = await reserve(plan)
            lined_up.append(name)
            async for _ in admission.infer([Message(role="user", content=name)]):
                pass
            await admission.end()
            return admission.waited_take() > 0

        lined_up: list[str] = []
        calls = []
        for name in ("greedy", "greedy", "greedy", "other"):
            before = len(lined_up)
            calls.append(asyncio.ensure_future(call(name)))
            await until(lambda before=before: len(lined_up) > before)
        waited = await asyncio.gather(*calls)
        return [seen.json["messages"][0]["content"] for seen in server.seen], list(waited)

    first = replace(said("ok"), wait_s=0.5)
    served, waited = told(story, first, said("ok"))
    assert served == ["greedy", "greedy", "other", "greedy"]
    assert all(waited[1:])


def test_ingestion_leaves_the_embedders_last_slot_to_questions(servers: None, team: Any) -> None:
    row = Deployment.objects.select_related("backend").get(purpose="embedding")
    row.slots = 2
    row.save()

    async def story(server: FaultServer) -> list[str]:
        await sync_to_async(Backend.objects.filter(pk=row.backend_id).update)(
            kind="openai", base_url=f"{server.url}/v1"
        )
        batches = [
            asyncio.ensure_future(embed([f"batch{n}"], role="passage", payer={"team_id": team.id}))
            for n in range(2)
        ]
        await until(lambda: outstanding(row.id) == 2 and len(server.seen) == 1)
        target = await sync_to_async(embedding_target)()
        await embed_plain(target, ["question"], payer=Payer(team_id=team.id))
        texts = [seen.json["input"][0] for seen in server.seen]
        for batch in batches:
            batch.cancel()
        await asyncio.wait(batches)
        return texts

    texts = told(story, Script(wait_s=30), Script())
    assert [text.rpartition(" ")[2][:5] for text in texts] == ["batch", "quest"]

"""Reranking through the gate: reserved and booked by itself, cleared for what it reads, never a reason to fail."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync

from app.accounts.models import Team
from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.billing.services import bootstrap_defaults, price_set
from app.billing.types import Payer
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put
from app.common.db import run_db
from app.common.models import uuid7
from app.gate import reranking
from app.gate.clients import client_close
from app.gate.reranking import rerank
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.testing.fault_server import FaultServer, Script
from tests.factories import EMBEDDING_PRICE
from tests.integration.chat.conftest import servers as servers  # noqa: PLC0414

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["a blue pump", "the red valve closes", "red paint"]
BROKEN = Script(status=500, body=(orjson.dumps({"error": {"message": "no"}}),))


def deployment_at(url: str, *, clearance: str = "internal", price_key: str = "rerank/bge") -> Deployment:
    backend = backend_put(name="Reranker", kind="vllm", base_url=f"{url}/v1")
    row, _ = deployment_put(
        backend=backend,
        upstream_model="bge-reranker",
        purpose=Deployment.Purpose.RERANK.value,
        public_name="bge-reranker",
        price_key=price_key,
        clearance=clearance,
    )
    price_set(price_key="rerank/bge", rates=EMBEDDING_PRICE, approved_by="tests")
    return row


def served(
    story: Callable[[], Awaitable[Any]], *scripts: Script, prepare: Callable[[str], object] = deployment_at
) -> tuple[Any, int]:
    """(what `story` gives, how many calls reached the server) with a scripted server set up as reranker."""

    async def whole() -> tuple[Any, int]:
        async with FaultServer(*scripts) as upstream:
            await run_db(prepare, upstream.url)
            try:
                return await story(), len(upstream.seen)
            finally:
                await client_close()

    return async_to_sync(whole)()


def asking(team: Team, level: str = "internal") -> Callable[[], Awaitable[Any]]:
    async def ask() -> Any:
        return await rerank("red valve", TEXTS, payer=Payer(team_id=team.id), level=level)

    return ask


def test_a_call_is_held_made_and_booked_as_what_it_is(team: Team, servers: None) -> None:
    found, _ = served(asking(team), Script())
    assert found.scores == [0.0, 1.0, 0.5]
    held, attempt = Reservation.objects.get(), UsageAttempt.objects.get()
    assert (held.kind, held.state, held.team_id) == ("rerank", "settled", team.id)
    assert (attempt.kind, attempt.source, attempt.estimated) == ("rerank", "server_final", False)
    assert attempt.deployment_id == held.deployment_id
    entry = LedgerEntry.objects.get()
    assert (entry.call_kind, entry.price > 0) == ("rerank", True)


def test_a_turn_pays_for_it_and_is_told_when_it_fails(team: Team, servers: None) -> None:
    async def story() -> Any:
        plan = CallPlan(
            reservation_id=uuid7(),
            payer=Payer(team_id=team.id),
            kind="chat",
            targets=tuple(await run_db(reranking._targets)),
            input_tokens=10,
            turn_id=uuid7(),
            level="public",
        )
        admission = await reserve(plan)
        try:
            found = [await rerank("red valve", TEXTS, payer=admission, level="internal") for _ in range(2)]
        finally:
            await admission.end()
        return plan, admission, found

    (plan, admission, (first, second)), _ = served(story, Script(), BROKEN)
    assert first.scores == [0.0, 1.0, 0.5]
    assert second is None
    assert [notice["code"] for notice in admission.notices] == ["not_reranked"]
    calls = Reservation.objects.filter(kind="rerank").order_by("id")
    assert [(row.turn_id, row.state) for row in calls] == [
        (plan.turn_id, "settled"),
        (plan.turn_id, "released"),
    ]
    assert admission.attempts == []


@pytest.mark.parametrize("level", ["private", "internal"])
def test_texts_go_only_where_their_level_may_be_seen(team: Team, servers: None, level: str) -> None:
    at = partial(deployment_at, clearance="public")
    assert served(asking(team, level), Script(), prepare=at) == (None, 0)
    assert not Reservation.objects.exists()


def test_without_a_deployment_it_is_not_ready_and_asks_nobody(team: Team, servers: None) -> None:
    assert not rerank.ready()
    assert async_to_sync(asking(team))() is None
    assert not Reservation.objects.exists()


def test_a_budget_without_room_costs_the_order_and_nothing_else(team: Team) -> None:
    bootstrap_defaults()
    at = partial(deployment_at, price_key="rerank/unpriced")
    assert served(asking(team), Script(), prepare=at) == (None, 0)

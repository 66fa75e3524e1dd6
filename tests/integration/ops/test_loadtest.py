"""`manage.py loadtest`: the knee of a server that has one on purpose, and the counters of the real one."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Sum

from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.billing.services import (
    bootstrap_defaults,
    budget_set,
    price_set,
    reservation_hold,
    reservation_settle,
)
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.catalog.models import Deployment
from app.catalog.selectors import Target
from app.catalog.services import backend_put, deployment_put
from app.common.models import uuid7
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import FaultServer, Script
from tests.e2e.flood import servers_of
from tests.factories import CHAT_PRICE

pytestmark = pytest.mark.django_db
SLOTS = 4
SLOW = Script(answer=Answer(words=(" word",) * 8, input_tokens=60), gap_s=0.03)
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run() -> Run:
    def made(*arguments: str) -> dict[str, Any]:
        out = StringIO()
        call_command("loadtest", *arguments, "--json", stdout=out, stderr=StringIO())
        return json.loads(out.getvalue())

    return made


def deployed(url: str, name: str = "kneed") -> None:
    bootstrap_defaults()
    backend = backend_put(name=name, kind="openai-compatible", base_url=url)
    deployment_put(
        backend=backend, upstream_model=name, purpose=Deployment.Purpose.CHAT.value, public_name=name,
        price_key=name, context_window=96, slots=2,
    )  # fmt: skip
    price_set(price_key=name, rates=CHAT_PRICE, approved_by="tests")


@pytest.fixture
def kneed() -> Iterator[str]:
    """A server that serves four calls at once; others wait for their turn."""
    with servers_of(kneed=FaultServer(SLOW, slots=SLOTS)) as urls:
        deployed(urls["kneed"])
        yield "kneed"


def test_the_knee_is_the_servers_own_number_of_places(run: Run, kneed: str) -> None:
    found = run(kneed, "--levels", "1,2,4,16", "--rounds", "3", "--calls", "4", "--yes")
    assert found["knee"]["concurrency"] == SLOTS
    assert found["lengths"]["source"] == "built_in"
    assert [level["concurrency"] for level in found["levels"]] == [1, 2, 4, 16]
    assert all(level["failed"] == 0 and level["server"] is None for level in found["levels"])
    calls = sum(level["calls"] for level in found["levels"])
    booked = LedgerEntry.objects.all()
    assert (booked.count(), set(booked.values_list("call_kind", "team_id"))) == (calls, {("loadtest", None)})
    sums = booked.aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"))
    assert sums == {"input": 60 * calls, "output": 8 * calls}
    assert not Reservation.objects.filter(state="held").exists()
    row = Deployment.objects.get(public_name=kneed)
    assert row.knee_tokens_per_s == found["knee"]["all_tokens_per_s"]


def test_what_the_real_server_counted_stands_beside_the_ledger(run: Run, chat_target: Target) -> None:
    # Wide levels of a tiny window, so that it is over soon.
    Deployment.objects.filter(id=chat_target.deployment_id).update(context_window=160, max_output_tokens=8)
    found = run(chat_target.public_name, "--levels", "1,2", "--rounds", "1", "--calls", "2", "--yes")
    for level in found["levels"]:
        assert level["estimated"] == 0
        # Other tests may ask the same server at the same moment, so it may have counted more, never less.
        assert level["server"]["input_tokens"] >= level["input_tokens"] > 0
        assert level["server"]["output_tokens"] >= level["output_tokens"] > 0
        assert level["ttft_ms"]["p50"] > 0
    assert {a.finish_reason for a in UsageAttempt.objects.all()} == {"length"}


def test_recorded_lengths_are_replayed_once_there_are_enough(run: Run, kneed: str) -> None:
    row = Deployment.objects.get(public_name=kneed)
    for _ in range(50):
        held = reservation_hold(
            hold=Hold(
                reservation_id=uuid7(), payer=Payer(team_id=None), kind="chat", price_key=kneed, input_tokens=20,
                output_tokens=3, deployment_id=row.id,
            )
        )  # fmt: skip
        attempt = Attempt(buckets=Buckets(input=20, output=3))
        reservation_settle(reservation_id=held.reservation_id, attempts=[attempt])
    found = run(kneed, "--levels", "1", "--rounds", "2", "--calls", "2", "--yes")
    assert found["lengths"] == {"source": "ledger", "calls": 50, "cut": 0}
    assert found["levels"][0]["calls"] == 2
    assert found["knee"] is None
    assert "No knee up to 1 at once" in found["verdict"]


def test_a_priced_deployment_is_left_alone_without_a_word(run: Run, kneed: str) -> None:
    with pytest.raises(CommandError, match=r"Nothing was sent\. Say --yes"):
        run(kneed)
    assert not Reservation.objects.exists()


def test_a_free_one_runs_at_once(run: Run, kneed: str) -> None:
    price_set(
        price_key=kneed,
        rates=[Rate(component=part, price=Decimal(0)) for part in ("input", "output")],
        approved_by="tests",
    )
    assert run(kneed, "--levels", "1", "--calls", "1")["levels"][0]["failed"] == 0


def test_a_used_up_budget_ends_it_with_the_budgets_name(run: Run, kneed: str) -> None:
    budget_set(scope="installation", unit="money", limit=Decimal("0.0001"), period="month")
    with pytest.raises(CommandError, match="installation"):
        run(kneed, "--levels", "2", "--yes")
    assert not Reservation.objects.filter(state="held").exists()


def test_a_server_that_is_away_is_said(run: Run) -> None:
    deployed("http://127.0.0.1:9")
    found = run("kneed", "--levels", "1,2", "--rounds", "1", "--yes")
    assert (len(found["levels"]), found["levels"][0]["failed"]) == (1, found["levels"][0]["calls"])
    assert "most calls failed" in found["verdict"]


@pytest.mark.parametrize(
    ("name", "said"), [("other", "There is no deployment `other`"), ("kneed", "runs in several places")]
)
def test_a_name_that_is_not_one_deployment_is_refused(run: Run, name: str, said: str) -> None:
    deployed("http://127.0.0.1:9")
    backend = backend_put(name="second", kind="openai-compatible", base_url="http://127.0.0.1:10")
    deployment_put(
        backend=backend,
        upstream_model="m",
        purpose=Deployment.Purpose.CHAT.value,
        public_name="kneed",
        price_key="k",
    )
    with pytest.raises(CommandError, match=f"{said}.*kneed@kneed, kneed@second"):
        run(name, "--yes")
    run_one = run("kneed@kneed", "--levels", "1", "--rounds", "1", "--yes")
    assert run_one["name"] == "kneed on kneed"


@pytest.mark.parametrize("levels", ["", "0", "a", "1,-2"])
def test_levels_are_whole_numbers(run: Run, levels: str) -> None:
    deployed("http://127.0.0.1:9")
    with pytest.raises(CommandError, match="--levels wants whole numbers"):
        run("kneed", "--levels", levels)

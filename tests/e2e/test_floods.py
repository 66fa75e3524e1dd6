"""No limit admits a call that does not fit: not by hundreds at once over several processes, and not while those die."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from decimal import Decimal

import httpx
import psutil
import pytest
import redis

from tests.e2e.flood import FEE, TOKENS, Caller, Flood, flood_made, script, servers
from tests.e2e.live import Live, until
from tests.stack import command

pytestmark = [pytest.mark.live(alone=True), pytest.mark.prove]
CALLS, FIT, EACH = 200, 20, 12
HELD = 40
"""Tokens that a call holds, more or less: its question and frame as we count them, and its answer."""
CHAOS_SECONDS = 60


def unit_size(unit: str) -> Decimal:
    """What one call takes of a limit."""
    return {"money": FEE, "requests": Decimal(1)}[unit]


async def all_at_once(flood: Flood, urls: list[str]) -> list[Caller]:
    limits = httpx.Limits(max_connections=CALLS)
    async with httpx.AsyncClient(timeout=300, limits=limits) as http:
        callers = [Caller(flood, number, http) for number in (0, 1)]
        work = []
        for number in range(CALLS):
            who = callers[number % 2]
            door = (who.v1, who.rest, who.ledger, who.v1)[number // 2 % 4]
            work.append(door(urls[number % len(urls)]))
        await asyncio.gather(*work)
    return callers


@pytest.mark.parametrize("unit", ["money", "requests"])
def test_two_hundred_at_once_against_a_budget_for_twenty(live: Live, unit: str) -> None:
    size = unit_size(unit)
    # Every call is held before the first ends, so what fits is what the limits say and not who was quick.
    with servers(**{f"slow-{unit}": script(wait_s=5.0)}) as models:
        flood = flood_made(live, models, unit=unit, pool=FIT * size, allowance=EACH * size)
        urls = live.more_webs(4)
        callers = asyncio.run(all_at_once(flood, urls))
    outcomes = sum((caller.outcomes for caller in callers), Counter())
    assert outcomes == {"admitted": FIT, "refused": CALLS - FIT}
    assert all(caller.outcomes["admitted"] <= EACH for caller in callers)
    assert [flood.charges_of(account) for account in flood.accounts] == [
        caller.outcomes["admitted"] for caller in callers
    ]
    assert flood.sums() == (FIT * FEE, FIT * TOKENS, FIT)
    assert flood.held() == 0
    team = flood.balance("team")
    assert (team["limit"], team["remaining"]) == (FIT * size, 0)


def test_two_hundred_at_once_never_exceed_a_limit_in_tokens(live: Live) -> None:
    """What is held for an answer is more than it takes, so some of the limit is left; never less than nothing."""
    with servers(**{"slow-tokens": script(wait_s=3.0)}) as models:
        flood = flood_made(live, models, unit="tokens", pool=FIT * HELD, allowance=EACH * HELD)
        urls = live.more_webs(4)
        callers = asyncio.run(all_at_once(flood, urls))
    outcomes = sum((caller.outcomes for caller in callers), Counter())
    assert set(outcomes) == {"admitted", "refused"}
    price, tokens, charges = flood.sums()
    assert 0 < charges == outcomes["admitted"]
    assert tokens <= FIT * HELD
    assert (price, tokens) == (charges * FEE, charges * TOKENS)
    assert flood.held() == 0
    team = flood.balance("team")
    assert team["limit"] - team["remaining"] == tokens


def beat_of(live: Live) -> psutil.Process:
    """The scheduler of this installation."""
    for process in psutil.process_iter(["cmdline"]):
        if "beat" not in (process.info["cmdline"] or ()):
            continue
        if process.environ().get("TESSERA_DATA") == str(live.data):
            return process
    raise AssertionError("no beat runs")


class Chaos:
    """Web processes that are killed at random and started again, for a minute."""

    def __init__(self, live: Live, flood: Flood, rude: str) -> None:
        self.live, self.flood, self.rude = live, flood, rude
        self.urls = live.more_webs(4)
        self.until = time.monotonic() + CHAOS_SECONDS
        self.lost = 0
        self.random = random.Random(7)

    async def run(self) -> list[Caller]:
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=64)) as http:
            callers = [Caller(self.flood, number, http) for number in (0, 1)]
            clients = [self.client(callers[n % 2], n) for n in range(24)]
            await asyncio.gather(self.kill(), *clients)
        return callers

    async def client(self, who: Caller, number: int) -> None:
        doors = (who.v1, who.rest, who.ledger, lambda url: who.v1(url, model=self.rude))
        while time.monotonic() < self.until:
            try:
                await doors[number % 4](self.random.choice(self.urls))
            except (httpx.HTTPError, ValueError, KeyError):
                # The process died with the call; what became of it is what this test is about.
                self.lost += 1
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        while time.monotonic() < self.until:
            await asyncio.sleep(3)
            victim = self.random.randrange(len(self.urls))
            os.kill(self.live.web_pid(self.urls[victim]), signal.SIGKILL)
            self.urls[victim] = await asyncio.to_thread(self.live.another_web)
            if self.random.random() < 0.3:
                await asyncio.to_thread(redis.Redis.from_url(self.live.run["redis_url"]).flushall)


def test_a_minute_of_dying_processes_overspends_nothing(live: Live) -> None:
    """kill -9 at random, Valkey flushed, beat stopped, and one server that writes more than it was allowed."""
    limit = 1500 * FEE
    beat = beat_of(live)
    beat.suspend()
    try:
        with servers(polite=script(), rude=script(usage="wrong")) as models:
            flood = flood_made(live, models, unit="money", pool=limit, allowance=limit * 2 / 3, output="1")
            chaos = Chaos(live, flood, "rude")
            callers = asyncio.run(chaos.run())
    finally:
        beat.resume()
    assert sum(caller.outcomes["admitted"] for caller in callers) > 100
    assert chaos.lost > 0
    until(lambda: flood.held() == 0 or None, "every hold has ended", patience=240)
    price, _, _ = flood.sums()
    over = live.sql(
        "SELECT price_key, sum(price) FROM billing_ledgerentry WHERE team_id = %s AND overshoot GROUP BY price_key",
        flood.team,
    )
    assert {key for key, _ in over} <= {"rude"}
    beyond = sum((amount for _, amount in over), Decimal(0))
    assert price <= limit + beyond
    team = flood.balance("team")
    assert team["remaining"] == max(Decimal(0), limit - price)
    done = command("ledger_verify", env={"TESSERA_DATA": str(live.data)})
    # 2: the ledger agrees, and a server did work for processes that were killed.
    assert done.returncode in {0, 2}, done.stdout

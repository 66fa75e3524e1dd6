"""Tuesday deploy: two hundred answers run through nginx while both web processes are replaced, one after the other."""

import asyncio
import json
import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from tests.e2e.flood import FEE, INPUT, WORDS, Flood, flood_made, servers
from tests.e2e.live import Live, Stream, alive, until
from tests.e2e.nginx import Nginx, nginx

pytestmark = [pytest.mark.e2e, pytest.mark.live(alone=True), pytest.mark.prove]

STREAMS = int(os.environ.get("TESSERA_DEPLOY_STREAMS", "200"))
SLOW = Script(answer=Answer(words=WORDS, input_tokens=INPUT), gap_s=3.0)
"""Its four words take a good while, so that many answers run when a process is told to go. Its usage comes later than
a client waits for it, so tokens are not this test's matter; each request has one fee."""


class Readers:
    """Everybody who asks, and what each has on the screen."""

    def __init__(self, flood: Flood, url: str) -> None:
        self.flood, self.url = flood, url
        self.seen: list[Stream] = []
        self.again: Counter[str] = Counter()
        """What they did besides reading on: asked again where refused, came back where cut."""

    async def ask(self, http: httpx.AsyncClient, number: int) -> None:
        """As a page or a program does it: one question under one key, until its answer is whole."""
        headers = {"Authorization": f"Bearer {self.flood.keys[number % 2]}"}
        made = await self._made(http, headers)
        seen = Stream()
        self.seen.append(seen)
        body = {"text": f"Count, {number}.", "model": self.flood.model, "collections": []}
        where = f"{self.url}/api/v1/conversations/{made}/turns/"
        key = {"Idempotency-Key": f"deploy-{number}"}
        while "turn" not in seen.names:
            try:
                async with http.stream("POST", where, json=body, headers=headers | key) as response:
                    if response.status_code == 200:
                        await self._read(response, seen)
                        break
                    self.again[f"refused {response.status_code}"] += 1
            except httpx.TransportError:
                self.again["cut"] += 1
            await asyncio.sleep(0.5)
        while seen.names[-1] not in {"done", "error"}:
            await self._resume(http, seen, headers)

    async def _made(self, http: httpx.AsyncClient, headers: dict[str, str]) -> str:
        while True:
            try:
                answer = await http.post(
                    f"{self.url}/api/v1/conversations/", json={"team": self.flood.team}, headers=headers
                )
                if answer.status_code == 201:
                    return str(answer.json()["id"])
                self.again[f"refused {answer.status_code}"] += 1
            except httpx.TransportError:
                self.again["cut"] += 1
            await asyncio.sleep(0.5)

    async def _resume(self, http: httpx.AsyncClient, seen: Stream, headers: dict[str, str]) -> None:
        self.again["came back"] += 1
        where = f"{self.url}/api/v1/turns/{seen.body('turn')['turn_id']}/events/"
        try:
            async with http.stream(
                "GET", where, headers=headers | {"Last-Event-ID": str(seen.last_id)}
            ) as response:
                if response.status_code == 200:
                    await self._read(response, seen)
                    return
        except httpx.TransportError:
            self.again["cut"] += 1
        await asyncio.sleep(0.5)

    @staticmethod
    async def _read(response: httpx.Response, seen: Stream) -> None:
        number, name = 0, ""
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                seen.events.append((number, name, json.loads(line[6:])))

    @property
    def begun(self) -> int:
        return sum("turn" in seen.names for seen in self.seen)

    @property
    def ended(self) -> int:
        return sum(seen.names[-1:] == ["done"] for seen in self.seen)


async def deployed(live: Live, flood: Flood, proxy: Nginx, urls: list[str], fresh: list[str]) -> Readers:
    """Ask, and meanwhile put a fresh process in the place of each old one."""
    readers = Readers(flood, proxy.url)
    limits = httpx.Limits(max_connections=STREAMS + 10)
    async with httpx.AsyncClient(timeout=600, limits=limits) as http:
        work = [asyncio.create_task(readers.ask(http, number)) for number in range(STREAMS)]
        for place, wanted in ((0, STREAMS // 4), (1, STREAMS // 2)):
            enough = lambda wanted=wanted: readers.begun >= wanted or None  # noqa: E731
            await asyncio.to_thread(until, enough, f"{wanted} answers have begun", 300)
            old, urls[place] = urls[place], fresh[place]
            assert readers.ended < STREAMS, "everything had ended before the process was replaced"
            await asyncio.to_thread(proxy.replace, urls)
            pid = live.web_pid(old)
            os.kill(pid, signal.SIGTERM)
            gone = lambda pid=pid: not alive(pid) or None  # noqa: E731
            await asyncio.to_thread(until, gone, f"{old} ends by itself", 300)
        await asyncio.gather(*work)
    return readers


def test_both_web_processes_are_replaced_and_no_answer_is_lost_or_doubled(live: Live) -> None:
    with servers(deploy=SLOW) as models:
        flood = flood_made(live, models, unit="money", pool=STREAMS * FEE * 2, allowance=STREAMS * FEE * 2)
        live.sql("UPDATE catalog_deployment SET slots = %s WHERE public_name = 'deploy'", STREAMS)
        urls, fresh = ([live.another_web() for _ in range(2)] for _ in range(2))
        with nginx(urls) as proxy:
            readers = asyncio.run(deployed(live, flood, proxy, urls, fresh))
    print(f"{STREAMS} streams; besides reading on: {dict(readers.again)}")  # noqa: T201 - what `make prove` is for
    rows: list[tuple[Any, ...]] = live.sql(
        "SELECT t.id::text, t.state, t.answer, count(e.id) FROM chat_turn t "
        "LEFT JOIN billing_ledgerentry e ON e.reservation_id = t.reservation_id AND e.kind = 'charge' "
        "WHERE t.team_id = %s GROUP BY t.id",
        flood.team,
    )
    assert len(rows) == STREAMS
    assert {row[1:] for row in rows} == {("done", "".join(WORDS), 1)}
    by_turn = {row[0]: row[2] for row in rows}
    shown = {seen.body("turn")["turn_id"]: seen for seen in readers.seen}
    assert shown.keys() == by_turn.keys()
    for turn, seen in shown.items():
        assert (seen.text, seen.names.count("done")) == (by_turn[turn], 1)
    price, _, charges = flood.sums()
    assert (price, charges) == (STREAMS * FEE, STREAMS)
    assert flood.held() == 0

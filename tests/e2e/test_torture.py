"""Minutes of reloads, kills and cuts: every answer is read whole, once, and booked once."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.e2e.flood import flood_made, servers_of
from tests.e2e.live import Live, until
from tests.e2e.nginx import Nginx, nginx, required
from tests.e2e.torture import Reader, Screen, Stalled, Teller
from tests.stack import command

pytestmark = [pytest.mark.live(alone=True), pytest.mark.prove]
SECONDS = float(os.environ.get("TESSERA_TORTURE_SECONDS", "300"))
STREAMS = int(os.environ.get("TESSERA_TORTURE_STREAMS", "200"))
PROCESSES = 4


class Torture:
    """Everything at once: readers that reload, processes that die, a proxy whose worker dies."""

    def __init__(self, live: Live, proxy: Nginx, urls: list[str], readers: list[Reader]) -> None:
        self.live, self.proxy, self.urls, self.readers = live, proxy, urls, readers
        self.random = random.Random(11)
        self.ends_at = time.monotonic() + SECONDS
        self.counts: Counter[str] = Counter()

    @property
    def on(self) -> bool:
        return time.monotonic() < self.ends_at

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=2 * STREAMS)
        async with httpx.AsyncClient(timeout=httpx.Timeout(60, read=90), limits=limits) as http:
            await asyncio.gather(
                self.kill(), self.cut(), *(self.read(reader, http) for reader in self.readers)
            )

    async def read(self, reader: Reader, http: httpx.AsyncClient) -> None:
        await asyncio.sleep(self.random.random() * 10)
        while self.on:
            try:
                await reader.tell(http, self.random.randrange(20, 90))
            except Stalled as exc:
                waiting = [reader.where(reader.screens[-1]) for reader in self.readers if reader.waits]
                raise AssertionError("\n".join([str(exc), self.known(exc.turn_id), *waiting[:20]])) from exc

    def known(self, turn_id: str) -> str:
        """What the database and the processes say of a turn that does not end."""
        turn = self.live.turn_row(turn_id) if turn_id else "none"
        ready = {url: self.live.ready(url) for url in self.urls}
        return f"the turn: {turn}; held: {len(self.live.held())}; ready: {ready}; {dict(self.counts)}"

    async def kill(self) -> None:
        """A web process dies, and another takes its place behind the proxy."""
        while self.on:
            await asyncio.sleep(10)
            number = self.random.randrange(PROCESSES)
            os.kill(self.live.web_pid(self.urls[number]), signal.SIGKILL)
            self.counts["processes killed"] += 1
            self.urls[number] = await asyncio.to_thread(self.live.another_web)
            await asyncio.to_thread(self.proxy.replace, self.urls)

    async def cut(self) -> None:
        """Every connection through the proxy breaks at once."""
        while self.on:
            await asyncio.sleep(self.random.uniform(5, 15))
            self.proxy.cut()
            self.counts["proxy cuts"] += 1


def conversations_of(live: Live, readers: list[Reader], team: str) -> None:
    for reader in readers:
        made = live.http.post(
            "/api/v1/conversations/", json={"title": "torture", "team": team}, headers=reader.headers
        )
        reader.conversation = made.json()["id"]


def rows_of(live: Live, readers: list[Reader]) -> dict[str, tuple[Any, ...]]:
    """(state, answer, entries in the ledger) of every turn."""
    found = live.sql(
        "SELECT t.id::text, t.state, t.answer, (SELECT count(*) FROM billing_ledgerentry e "
        "WHERE e.reservation_id = t.reservation_id) FROM chat_turn t WHERE t.conversation_id::text = ANY(%s)",
        [reader.conversation for reader in readers],
    )
    return {row[0]: row[1:] for row in found}


def faults_of(screen: Screen, row: tuple[Any, ...], told: set[int]) -> list[str]:
    """What is wrong with what one reader saw of a turn; `told` are the stories that a server began."""
    state, answer, entries = row
    wrong = []
    if screen.text != answer:
        wrong.append("the screen shows another text than what is stored")
    if len(screen.ends) != 1:
        wrong.append(f"{len(screen.ends)} ends")
    if screen.number not in told:
        # Its server broke off too often and was left alone, or the process died before it asked.
        whole = (state in {"failed", "interrupted"}, answer, entries) == (True, "", 0)
    elif state == "interrupted":
        whole = screen.sent.startswith(answer)
    else:
        whole = answer == screen.sent and state == ("failed" if screen.fickle else "done")
    if not whole:
        wrong.append("not what the server sent")
    if entries != 1 and (answer or entries):
        wrong.append(f"{entries} entries in the ledger")
    return wrong


def test_each_text_is_what_the_server_sent_and_each_is_booked_once(live: Live) -> None:
    required()
    tellers = {"steady": Teller(), "fickle": Teller(fickle=True)}
    with servers_of(**tellers) as models:
        flood = flood_made(live, models, unit="money", pool=10**6, allowance=10**6)
        live.sql(
            "UPDATE catalog_deployment SET slots = 512, max_output_tokens = 1000 WHERE public_name = ANY(%s)",
            list(models),
        )
        urls = live.more_webs(PROCESSES)
        with nginx(urls) as proxy:
            doors = [proxy.url, proxy.url, proxy.stubborn_url]
            names = {name: name for name in models}
            readers = [Reader(n, doors, flood.keys[n % 2], names) for n in range(STREAMS)]
            conversations_of(live, readers, flood.team)
            torture = Torture(live, proxy, urls, readers)
            asyncio.run(torture.run())
    rows = rows_of(live, readers)
    screens = [screen for reader in readers for screen in reader.screens]
    counts = sum((reader.counts for reader in readers), torture.counts)
    counts += Counter(f"turns {rows[screen.turn_id][0]}" for screen in screens)
    sys.stderr.write(f"\n{len(screens)} turns in {SECONDS:.0f} s over {STREAMS} streams: {dict(counts)}\n")
    told = tellers["steady"].told | tellers["fickle"].told
    wrong = {
        s.turn_id: (found, s.text, rows[s.turn_id])
        for s in screens
        if (found := faults_of(s, rows[s.turn_id], told))
    }
    assert wrong == {}, f"{len(wrong)} of {len(screens)}"
    # Asked once, however often the request was repeated.
    assert sorted(rows) == sorted(screen.turn_id for screen in screens)
    until(lambda: flood.held() == 0 or None, "every hold has ended", patience=900)
    price, _, charges = flood.sums()
    assert charges == sum(entries for _, _, entries in rows.values())
    assert price == charges * Decimal("0.01")
    done = command("ledger_verify", env={"TESSERA_DATA": str(live.data)})
    # 2: the ledger agrees, and a server did work for processes that were killed.
    assert done.returncode in {0, 2}, done.stdout

"""A team with two members in front of scripted model servers, and callers at every door at once."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
import psycopg

from app.billing.types import Attempt, Buckets, Hold, Payer, Settlement
from app.billing.wire import hold_payload, settlement_payload
from app.common.models import uuid7
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import FaultServer, Script
from tests.e2e.live import Live
from tests.stack import command

FEE = Decimal("0.01")
"""What one request costs; nothing else costs anything, so that what is held is what is spent."""
WORDS = ("one", " two", " three", " four")
INPUT = 5
"""Tokens of each question by the servers' count: less than any door holds for it."""
TOKENS = INPUT + len(WORDS)
_SETUP = """
import json
from decimal import Decimal
from app.accounts.models import Role
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.accounts.selectors import ALL_SCOPES
from app.billing.services import budget_set, price_set
from app.billing.types import Rate
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put
from app.common.models import uuid7

owner = user_create(email=f"{{uuid7()}}@example.org", password="correct horse battery")
team = team_create(name="Flood", owner=owner)
found = {{"team": str(team.id), "keys": [], "accounts": []}}
for _ in range(2):
    user = user_create(email=f"{{uuid7()}}@example.org", password="correct horse battery")
    membership_set(team=team, user=user, role=Role.MEMBER)
    _, plain = key_create(name="flood", team_id=team.id, user_id=user.id, scopes=ALL_SCOPES)
    found["keys"].append(plain)
    found["accounts"].append(str(user.account_id))
for name, url in {servers!r}.items():
    backend = backend_put(name=name, kind="openai-compatible", base_url=url)
    row, _ = deployment_put(backend=backend, upstream_model=name, purpose=Deployment.Purpose.CHAT.value,
                            public_name=name, price_key=name, context_window=8000, slots=64)
    Deployment.objects.filter(id=row.id).update(max_output_tokens=4)
    rates = [Rate(component="request", price=Decimal({fee!r}), per_units=1)]
    rates += [Rate(component="input", price=Decimal(0)), Rate(component="output", price=Decimal({output!r}))]
    price_set(price_key=name, rates=rates, approved_by="tests")
budget_set(scope="team", unit={unit!r}, limit=Decimal({pool!r}), period="month", team_id=team.id)
budget_set(scope="allowance", unit={unit!r}, limit=Decimal({allowance!r}), period="month", team_id=team.id)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Flood:
    """What was set up for one test."""

    live: Live
    team: str
    keys: list[str]
    accounts: list[str]
    model: str

    def sums(self) -> tuple[Decimal, int, int]:
        """(price, input and output tokens, charges) of the team in the ledger."""
        rows = self.live.sql(
            "SELECT coalesce(sum(price), 0), coalesce(sum(input_tokens + output_tokens), 0), "
            "count(*) FILTER (WHERE kind = 'charge') FROM billing_ledgerentry WHERE team_id = %s",
            self.team,
        )
        price, tokens, charges = rows[0]
        return price, int(tokens), charges

    def charges_of(self, account: str) -> int:
        return self.live.sql(
            "SELECT count(*) FROM billing_ledgerentry WHERE team_id = %s AND account_id = %s AND kind = 'charge'",
            self.team,
            account,
        )[0][0]

    def held(self) -> int:
        return self.live.sql(
            "SELECT count(*) FROM billing_reservation WHERE team_id = %s AND state = 'held'", self.team
        )[0][0]

    def balance(self, scope: str) -> dict[str, Decimal]:
        """The spent part of one of the first member's limits, as the product itself tells it."""
        answer = httpx.get(
            f"{self.live.run['url']}api/v1/limits/",
            headers={"Authorization": f"Bearer {self.keys[0]}"},
            timeout=60,
        ).json()
        row = next(row for row in answer["items"] if row["scope"] == scope)
        return {
            "limit": Decimal(str(_plain(row["limit"]))),
            "remaining": Decimal(str(_plain(row["remaining"]))),
        }


def _plain(value: Any) -> Any:
    return value["amount"] if isinstance(value, dict) else value


def servers(**scripts: Script) -> AbstractContextManager[dict[str, str]]:
    """Scripted model servers by name."""
    return servers_of(**{name: FaultServer(script) for name, script in scripts.items()})


@contextmanager
def servers_of(**running: FaultServer) -> Iterator[dict[str, str]]:
    """Model servers by name, in a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        yield {name: run(server.__aenter__()).url for name, server in running.items()}
    finally:
        for server in running.values():
            run(server.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def script(*, usage: str = "right", wait_s: float = 0.0) -> Script:
    """An answer of four words."""
    return Script(answer=Answer(words=WORDS, input_tokens=INPUT, usage=usage), wait_s=wait_s)


def flood_made(
    live: Live,
    urls: dict[str, str],
    *,
    unit: str,
    pool: Decimal | int,
    allowance: Decimal | int,
    output: str = "0",
) -> Flood:
    """Two members of a team with a pool and an allowance each."""
    code = _SETUP.format(
        servers=urls, unit=unit, pool=str(pool), allowance=str(allowance), fee=str(FEE), output=output
    )
    done = command("shell", "-v", "0", "-c", code, env={"TESSERA_DATA": str(live.data)})
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return Flood(live, found["team"], found["keys"], found["accounts"], next(iter(urls)))


class Caller:
    """One member's calls, by any door. Counts what came of each."""

    def __init__(self, flood: Flood, number: int, http: httpx.AsyncClient) -> None:
        self.flood, self.number, self.http = flood, number, http
        self.headers = {"Authorization": f"Bearer {flood.keys[number]}"}
        self.outcomes: Counter[str] = Counter()

    async def v1(self, url: str, *, model: str = "") -> str:
        """`/v1/chat/completions`, as any OpenAI client calls it."""
        body = {
            "model": model or self.flood.model,
            "max_tokens": 4,
            "messages": [{"role": "user", "content": "Count."}],
        }
        answer = await self.http.post(f"{url}/v1/chat/completions", json=body, headers=self.headers)
        return self._outcome(answer, {429})

    async def rest(self, url: str) -> str:
        """A turn of a conversation of its own."""
        made = await self.http.post(
            f"{url}/api/v1/conversations/", json={"team": self.flood.team}, headers=self.headers
        )
        if made.status_code != 201:
            return self._outcome(made, set())
        body = {"text": "Count.", "model": self.flood.model, "collections": [], "stream": False}
        answer = await self.http.post(
            f"{url}/api/v1/conversations/{made.json()['id']}/turns/", json=body, headers=self.headers
        )
        return self._outcome(answer, {402})

    async def ledger(self, _: str = "") -> str:
        """The two functions of the ledger themselves."""
        return await asyncio.to_thread(self._ledger)

    def _ledger(self) -> str:
        payer = Payer(team_id=UUID(self.flood.team), account_id=UUID(self.flood.accounts[self.number]))
        hold = Hold(
            reservation_id=uuid7(),
            payer=payer,
            kind="chat",
            price_key=self.flood.model,
            input_tokens=INPUT,
            output_tokens=4,
            min_output_tokens=4,
        )
        used = Attempt(
            buckets=Buckets(input=INPUT, output=len(WORDS)),
            number=1,
            outcome="completed",
            source="server",
            price_key=self.flood.model,
        )
        settlement = Settlement(hold.reservation_id, (used,))
        with psycopg.connect(self.flood.live.run["database_url"], autocommit=True) as connection:
            payload = hold_payload(hold, currency="EUR", allow_unlimited=False)
            answer = _call(connection, "billing_reserve", payload)
            if "refused" in answer:
                self.outcomes["refused"] += 1
                return "refused"
            _call(connection, "billing_settle", settlement_payload(settlement, currency="EUR"))
        self.outcomes["admitted"] += 1
        return "admitted"

    def _outcome(self, answer: httpx.Response, refusals: set[int]) -> str:
        if answer.status_code == 200:
            outcome = "admitted"
        elif answer.status_code in refusals:
            outcome = "refused"
        else:
            outcome = f"{answer.status_code} {answer.text[:200]}"
        self.outcomes[outcome] += 1
        return outcome


def _call(connection: psycopg.Connection, function: str, payload: Any) -> dict[str, Any]:
    query = f"SELECT {function}(%s::jsonb)"
    found = connection.execute(query, [json.dumps(payload, default=str)]).fetchone()
    assert found is not None
    answer: dict[str, Any] = found[0]
    return answer

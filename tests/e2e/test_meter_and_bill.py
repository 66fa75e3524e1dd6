"""The meter and the bill: what the ledger says of hundreds of mixed calls is what the servers themselves have counted.

`TESSERA_METER_CALLS` says how many (500). Finished calls agree to the token; stopped ones are told apart and agree to a
hundredth. The statement is the sum of its lines, and nothing of it changes when people and chats are gone.
"""

import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import httpx
import pytest

from tests.e2e.live import Live, events_of, until
from tests.stack import command

pytestmark = [pytest.mark.e2e, pytest.mark.live(alone=True), pytest.mark.prove]

CALLS = int(os.environ.get("TESSERA_METER_CALLS", "500"))
AT_ONCE = 6
"""More than the server has slots, so that one is always busy. Prompts and answers are short, for two cores to read."""
PEOPLE = 6
MODEL = "smollm2-135m-instruct"
NOTES = [
    f"The ferry to the island number {n} leaves at {n % 24} o'clock from the old pier." for n in range(40)
]
_SETUP = """
import json
from decimal import Decimal
from app.accounts.models import Role
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.billing.services import budget_set
from app.catalog.models import Backend, Deployment
from app.catalog.services import backend_put, deployment_put
from app.common.models import uuid7

people = [user_create(email=f"meter{n}-{uuid7()}@example.org", password="correct horse battery") for n in range(PEOPLE)]
team = team_create(name="Meter", owner=people[0])
made = {"team": str(team.id), "keys": [], "emails": [p.email for p in people]}
for person in people:
    membership_set(team=team, user=person, role=Role.ADMIN) if person != people[0] else None
    made["keys"].append(key_create(name="meter", team_id=team.id, user_id=person.id, scopes=ALL_SCOPES)[1])
for scope in ("installation", "team", "allowance"):
    team_id = None if scope == "installation" else team.id
    budget_set(scope=scope, unit="money", limit=Decimal(1000), period="month", team_id=team_id)
real = Deployment.objects.select_related("backend").get(public_name="MODEL")
known = real.backend
again = backend_put(name="Again", kind=known.kind, base_url=known.base_url, api_key=known.api_key)
gone = backend_put(name="Gone", kind="openai-compatible", base_url="http://127.0.0.1:9")
for backend, priority in ((again, 0), (gone, 10)):
    deployment_put(backend=backend, upstream_model=real.upstream_model, purpose="chat", public_name="retried",
                   price_key=real.price_key, context_window=real.context_window, slots=2, priority=priority)
made["embedder"] = Deployment.objects.filter(purpose="embedding").values_list("public_name", flat=True)[0]
print(json.dumps(made))
"""


@dataclass
class Meter:
    """The team, the servers' own counters, and what was asked."""

    live: Live
    team: str
    keys: list[str]
    emails: list[str]
    embedder: str
    url: str = ""
    collection: str = ""
    asked: Counter[str] = field(default_factory=Counter)

    def http(self, number: int) -> httpx.Client:
        key = self.keys[number % len(self.keys)]
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=600)

    def counters(self) -> dict[str, tuple[int, int]]:
        """(input, output) tokens since the start, by what the servers say themselves."""
        keys = json.loads((self.live.data / "secrets.json").read_text())
        chat = _page(self.live.run["inference_url"], keys["inference_key"])
        embedding = _page(self.live.run["embedding_url"], keys["embedding_key"])
        return {
            "chat": (
                chat["llamacpp:prompt_tokens_total"] + chat["llamacpp:prompt_tokens_cached_total"],
                chat["llamacpp:tokens_predicted_total"],
            ),
            "embedding": (embedding["embedding_prompt_tokens_total"], 0),
        }

    def booked(self, since: Any, condition: str = "true") -> dict[str, tuple[int, int]]:
        """(input, output) tokens in the ledger since then, by purpose of the deployment."""
        rows = self.live.sql(
            "SELECT d.purpose, sum(e.input_tokens), sum(e.output_tokens) FROM billing_ledgerentry e "
            "JOIN catalog_deployment d ON d.id = e.deployment_id JOIN billing_usageattempt a ON a.id = e.attempt_id "
            f"WHERE e.recorded_at > %s AND {condition} GROUP BY d.purpose",
            since,
        )
        none = {"chat": (0, 0), "embedding": (0, 0)}
        return none | {purpose: (int(read), int(written)) for purpose, read, written in rows}

    def quiet(self) -> None:
        """Wait until nothing is held and no document is being read."""
        until(lambda: not self.live.held(), "every hold has ended", patience=300)
        query = "SELECT count(*) FROM retrieval_document WHERE status NOT IN ('ready', 'failed', 'cancelled')"
        until(lambda: self.live.sql(query) == [(0,)], "every document is read", patience=300)


def _page(url: str, key: str) -> dict[str, int]:
    root = url.rstrip("/").removesuffix("/v1")
    text = httpx.get(f"{root}/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=30).text
    return {
        name: int(float(value)) for name, value in re.findall(r"^([a-z:_]+) ([\d.e+]+)$", text, re.MULTILINE)
    }


@pytest.fixture
def meter(live: Live) -> Meter:
    code = _SETUP.replace("PEOPLE", str(PEOPLE)).replace('"MODEL"', repr(MODEL))
    done = command("shell", "-v", "0", "-c", code, env={"TESSERA_DATA": str(live.data)})
    assert done.returncode == 0, done.stdout
    made = Meter(live, **json.loads(done.stdout.strip().splitlines()[-1]))
    made.url = live.another_web(TITLE_MODEL=MODEL)
    with made.http(0) as http:
        body = {"name": "Ferries", "team": made.team}
        made.collection = http.post("/api/v1/collections/", json=body).json()["id"]
    ingest(made, 0)
    made.quiet()
    return made


def messages(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Question {number}: what is the sea?"}]


def chat(meter: Meter, number: int) -> None:
    """A turn, every fourth over documents; its first question gets a title by a call of its own."""
    with meter.http(number) as http:
        made = http.post("/api/v1/conversations/", json={"team": meter.team}).json()["id"]
        body = {
            "text": f"When does ferry {number} leave?",
            "max_output_tokens": 3,
            "model": MODEL,
            "stream": False,
        }
        # Over documents the prompt is ten times as long, and nothing takes the server longer than reading it.
        body |= {"collections": [] if number % 4 else [meter.collection]}
        answer = http.post(f"/api/v1/conversations/{made}/turns/", json=body)
        assert answer.status_code == 200, answer.text


def v1(meter: Meter, number: int, model: str = MODEL, **more: Any) -> None:
    with meter.http(number) as http:
        body = {"model": model, "max_tokens": 3, "messages": messages(number), **more}
        answer = http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert not more.get("stream") or answer.text.rstrip().endswith("data: [DONE]")


def streamed(meter: Meter, number: int) -> None:
    v1(meter, number, stream=True)


def retried(meter: Meter, number: int) -> None:
    """The first deployment is not there; and a caller that repeats its call gets the same turn."""
    v1(meter, number, "retried")
    with meter.http(number) as http:
        made = http.post("/api/v1/conversations/", json={"team": meter.team}).json()["id"]
        body = {
            "text": f"Say {number}.",
            "max_output_tokens": 3,
            "model": MODEL,
            "collections": [],
            "stream": False,
        }
        same = [
            http.post(
                f"/api/v1/conversations/{made}/turns/", json=body, headers={"Idempotency-Key": f"m{number}"}
            )
            for _ in range(2)
        ]
        assert same[0].json()["id"] == same[1].json()["id"]


def embedding(meter: Meter, number: int) -> None:
    with meter.http(number) as http:
        body = {"model": meter.embedder, "input": [f"query: ferry {number}", "passage: the sea"]}
        assert http.post("/v1/embeddings", json=body).status_code == 200


def ingest(meter: Meter, number: int) -> None:
    with meter.http(0) as http:
        file = (
            f"note-{number}.txt",
            f"{NOTES[number % len(NOTES)]} Note {number}.",
        )
        answer = http.post(f"/api/v1/collections/{meter.collection}/documents/", files={"file": file})
        assert answer.status_code in {200, 202}, answer.text


def stop_chat(meter: Meter, number: int) -> None:
    """Stop by the button, after some words."""
    after = random.Random(number).randrange(1, 8)
    with meter.http(number) as http:
        made = http.post("/api/v1/conversations/", json={"team": meter.team}).json()["id"]
        body = {"text": LONG, "max_output_tokens": 200, "model": MODEL, "collections": []}
        with http.stream("POST", f"/api/v1/conversations/{made}/turns/", json=body) as response:
            turn, heard = "", 0
            for _, name, data in events_of(response):
                turn = data["turn_id"] if name == "turn" else turn
                heard += name == "delta"
                if heard == after:
                    assert http.post(f"/api/v1/turns/{turn}/stop/").status_code < 300
                    heard += 1


def stop_v1(meter: Meter, number: int) -> None:
    """Leave in the middle, as a program does that has heard enough."""
    after = random.Random(number).randrange(3, 10)
    body = {
        "model": MODEL,
        "max_tokens": 200,
        "stream": True,
        "messages": [{"role": "user", "content": LONG}],
    }
    with meter.http(number) as http, http.stream("POST", "/v1/chat/completions", json=body) as response:
        assert response.status_code == 200
        for _ in islice((line for line in response.iter_lines() if line.startswith("data: ")), after):
            pass


LONG = (
    "Write a very long story about a lighthouse keeper who counts the ships that pass in the night. " * 12
    + "Describe each ship, its cargo, its crew and where it is bound, in as many words as you can."
)
Kind = Callable[[Meter, int], None]
FINISHED: tuple[Kind, ...] = (chat, v1, streamed, retried, embedding, chat, v1, streamed, embedding, ingest)
STOPPED: tuple[Kind, ...] = (stop_chat, stop_v1)


def run(meter: Meter, kinds: tuple[Kind, ...], calls: int) -> None:
    """So many calls of all kinds in turn, a few at once; whatever one asserts, the test hears of."""
    began, order = time.monotonic(), list(islice(cycle(kinds), calls))
    random.Random(calls).shuffle(order)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(kind, meter, number) for number, kind in enumerate(order, 1)]:
            done.result()
    for kind in order:
        meter.asked[kind.__name__] += 1
    meter.quiet()
    sys.stdout.write(f"{calls} calls in {time.monotonic() - began:.0f} s\n")


def grown(meter: Meter, before: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    now = meter.counters()
    return {name: (now[name][0] - before[name][0], now[name][1] - before[name][1]) for name in now}


def test_the_ledger_is_what_the_servers_counted_and_the_bill_is_what_the_ledger_says(meter: Meter) -> None:
    started = moment(meter)
    before = meter.counters()
    run(meter, FINISHED, CALLS * 8 // 10)
    finished = meter.booked(started)
    until(lambda: grown(meter, before) == finished or None, f"the servers agree with {finished}", patience=30)
    estimated, failed = meter.live.sql(
        "SELECT count(*) FILTER (WHERE estimated), count(*) FILTER (WHERE outcome = 'failed') "
        "FROM billing_usageattempt WHERE created_at > %s",
        started,
    )[0]
    assert estimated == 0
    assert failed > 0, "some first attempts failed, and cost nothing"
    kinds = dict(
        meter.live.sql(
            "SELECT call_kind, count(*) FROM billing_ledgerentry WHERE recorded_at > %s GROUP BY 1", started
        )
    )
    assert kinds["title"] > 0

    stopping, before = moment(meter), meter.counters()
    run(meter, STOPPED, CALLS - CALLS * 8 // 10)
    stopped, counted = meter.booked(stopping, "a.outcome = 'stopped'"), grown(meter, before)
    completed = meter.booked(stopping, "a.outcome <> 'stopped'")
    ours = sum(stopped["chat"])
    theirs = sum(counted["chat"]) - sum(completed["chat"])
    flagged = meter.live.sql(
        "SELECT count(*) FROM billing_usageattempt WHERE created_at > %s AND outcome = 'stopped'", stopping
    )[0][0]
    report = {"calls": dict(meter.asked), "entries": kinds, "finished": finished, "stopped": flagged}
    report |= {"stopped tokens": ours, "by the server": theirs, "off %": round(100 * (ours / theirs - 1), 3)}
    sys.stdout.write(f"{json.dumps(report)}\n")
    assert flagged > 0
    assert abs(ours - theirs) <= theirs / 100
    bill_stays(meter, started)


def moment(meter: Meter) -> Any:
    return meter.live.sql("SELECT clock_timestamp()")[0][0]


def bill_stays(meter: Meter, started: Any) -> None:
    """The statement is the sum of its lines, and of the ledger; erasing people and chats changes no digit of it."""
    before = statement(meter)
    amounts = [
        Decimal(line["exact"]) for line in before["lines"] if line["section"] != "credit" and line["exact"]
    ]
    rounded = [
        Decimal(line["amount"]) for line in before["lines"] if line["section"] != "credit" and line["amount"]
    ]
    priced = meter.live.sql("SELECT sum(price) FROM billing_ledgerentry WHERE team_id = %s", meter.team)[0][0]
    assert sum(rounded) == Decimal(before["total"])
    assert sum(amounts[: len(amounts)]) - rounding(before) == Decimal(before["exact"]) == priced
    for number in range(PEOPLE):
        with meter.http(number) as http:
            for row in http.get("/api/v1/conversations/?limit=200").json()["items"]:
                assert http.delete(f"/api/v1/conversations/{row['id']}/").status_code == 204
    for email in meter.emails[PEOPLE // 2 :]:
        done = command("person_erase", email, "--yes", env={"TESSERA_DATA": str(meter.live.data)})
        assert done.returncode == 0, done.stdout
    assert statement(meter) == before
    assert (
        meter.live.sql("SELECT sum(price) FROM billing_ledgerentry WHERE team_id = %s", meter.team)[0][0]
        == priced
    )
    verified = command("ledger_verify", env={"TESSERA_DATA": str(meter.live.data)})
    assert verified.returncode == 0, verified.stdout
    assert "every balance agrees to the digit" in verified.stdout


def rounding(sheet: dict[str, Any]) -> Decimal:
    return sum(
        (Decimal(line["exact"]) for line in sheet["lines"] if line["section"] == "rounding"), Decimal(0)
    )


_STATEMENT = """
import json
from datetime import timedelta
from uuid import UUID
from app.billing.models import Statement
from app.billing.statement_export import statement_json
from app.billing.statement_sheet import statement_sheet
from app.billing.statements import statements_draft
from app.common.clock import now
statements_draft(at=now() + timedelta(days=32))
print(json.dumps(statement_json(statement_sheet(Statement.objects.get(team_id=UUID("TEAM"))))))
"""


def statement(meter: Meter) -> dict[str, Any]:
    """The team's draft of this month as it would be issued now."""
    done = command(
        "shell",
        "-v",
        "0",
        "-c",
        _STATEMENT.replace("TEAM", meter.team),
        env={"TESSERA_DATA": str(meter.live.data)},
    )
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found

"""Somebody leaves a running installation: exported, cut off in mid-answer, erased, and nowhere to be found."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
import redis
from psycopg import sql

from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from tests.e2e.flood import servers
from tests.e2e.live import Live, Stream, events_of, until
from tests.stack import PROCESS_ENV, REPOSITORY

pytestmark = [pytest.mark.live, pytest.mark.prove]
WORD = "quixotrophe"
LONG = f"Write a very long story about the {WORD} and the sea, with many chapters."
MAKE = """
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.accounts.models import User
from app.accounts.selectors import ALL_SCOPES
from app.common.models import uuid7
boss = User.objects.filter(is_staff=True).first()
email = f"leaver-{uuid7()}@example.org"
user = user_create(email=email, password="correct horse battery", name="Lea Ver")
own = user.default_team
team = team_create(name="Those who stay", owner=boss)
membership_set(team=team, user=user, role="member")
_, plain = key_create(name="a key", team_id=own.id, user_id=user.id, scopes=list(ALL_SCOPES))
import json
print(json.dumps(dict(email=email, key=plain, own=str(own.id), team=str(team.id), account=str(user.account_id))))
"""

ENDLESS = """
from decimal import Decimal
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.services import backend_put, deployment_put
backend = backend_put(name={name!r}, kind="openai-compatible", base_url={url!r})
deployment_put(backend=backend, upstream_model={name!r}, purpose="chat", public_name={name!r}, price_key={name!r},
               context_window=32000, slots=8)
rates = [Rate(component=part, price=Decimal("0.1")) for part in ("input", "output")]
price_set(price_key={name!r}, rates=rates, approved_by="tests")
"""


@dataclass
class Leaver:
    """The person as an HTTP client, and the ids that outlive them."""

    live: Live
    email: str
    key: str
    own: str
    team: str
    account: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def post(self, path: str, **wishes: Any) -> dict[str, Any]:
        answer = httpx.post(
            f"{self.live.run['url'].rstrip('/')}/api/v1/{path}", headers=self.headers, timeout=60, **wishes
        )
        assert answer.status_code < 300, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def get(self, path: str) -> dict[str, Any]:
        answer = httpx.get(
            f"{self.live.run['url'].rstrip('/')}/api/v1/{path}", headers=self.headers, timeout=60
        )
        found: dict[str, Any] = answer.json()
        return found

    def status(self, url: str) -> int:
        return httpx.get(f"{url}/v1/models", headers=self.headers, timeout=30).status_code


def manage(live: Live, *arguments: str) -> str:
    """A command of this installation; what it printed."""
    env = {k: v for k, v in PROCESS_ENV.items() if k != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "manage.py"), *arguments],
        cwd=REPOSITORY, env={**env, "TESSERA_DATA": str(live.data)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def model(live: Live) -> Iterator[str]:
    """A chat model that goes on for minutes, so that whatever ends its answers is not itself."""
    endless = Script(answer=Answer(words=("the ", f"{WORD} ", "and ", "the ", "sea ") * 2000), gap_s=0.05)
    with servers(endless=endless) as urls:
        url = urls["endless"]
        name = f"endless-{url.rpartition(':')[2]}"
        manage(live, "shell", "--no-imports", "-c", ENDLESS.format(name=name, url=url))
        yield name
        live.sql("UPDATE catalog_deployment SET enabled = false WHERE public_name = %s", name)


@pytest.fixture
def leaver(live: Live) -> Leaver:
    told = json.loads(manage(live, "shell", "--no-imports", "-c", MAKE).splitlines()[-1])
    return Leaver(live, **told)


class Reading(threading.Thread):
    """A stream that is read to its end beside the test."""

    def __init__(self, leaver: Leaver, url: str, path: str, body: dict[str, Any] | None = None) -> None:
        super().__init__(daemon=True)
        self.method = "GET" if body is None else "POST"
        self.request = {"url": f"{url}{path}", "json": body, "headers": leaver.headers}
        self.raw = ""
        self.stream = Stream()
        self.ended_at: float | None = None
        """When its last chunk had come; None for a stream that just broke off."""
        self.start()

    def run(self) -> None:
        with httpx.stream(self.method, timeout=120, **self.request) as response:
            if "/v1/chat/" in str(response.url):
                for line in response.iter_lines():
                    self.raw += f"{line}\n"
            else:
                for event in events_of(response):
                    self.stream.events.append(event)
        self.ended_at = time.monotonic()

    @property
    def begun(self) -> bool:
        return len(self.stream.text) > 20 or self.raw.count('"content"') > 5


def _dump(live: Live) -> Iterator[tuple[str, bytes]]:
    """(table, rows) of every table, as a dump has them."""
    with psycopg.connect(live.run["database_url"]) as connection:
        names = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in names:
            with connection.cursor().copy(
                sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(schema, table))
            ) as rows:
                yield table, b"".join(bytes(part) for part in rows)


READ: dict[Any, Callable[[redis.Redis, bytes], Any]] = {
    b"string": lambda broker, key: broker.get(key),
    b"hash": lambda broker, key: broker.hgetall(key),
    b"list": lambda broker, key: broker.lrange(key, 0, -1),
    b"set": lambda broker, key: broker.smembers(key),
    b"zset": lambda broker, key: broker.zrange(key, 0, -1),
    b"stream": lambda broker, key: broker.xrange(key),
}


def _broker(url: str) -> Iterator[tuple[bytes, bytes]]:
    """(key, what it holds) of everything in Valkey. A `DUMP` would not do: long values are compressed there."""
    for name in redis.Redis.from_url(url).info("keyspace"):
        broker = redis.Redis.from_url(urlsplit(url)._replace(path=f"/{name[2:]}").geturl())
        for key in broker.scan_iter():
            kind = broker.type(key)
            if kind != b"none":  # gone since
                yield key, repr(READ[kind](broker, key)).encode()


def _places(live: Live) -> list[str]:
    """Where the word is: tables, keys of the broker, files but for the database's and the broker's own."""
    word = WORD.encode()
    found = [f"table {table}" for table, rows in _dump(live) if word in rows.lower()]
    found += [f"key {key!r}" for key, value in _broker(live.run["redis_url"]) if word in value.lower()]
    own = {"postgres", "valkey", "models", "vectors"}
    for folder, below, names in os.walk(live.data):
        below[:] = [name for name in below if name not in own]
        for name in names:
            path = Path(folder) / name
            if path.is_file() and word in path.read_bytes().lower():
                found.append(f"file {path.relative_to(live.data)}")
    return found


def _entries(live: Live) -> list[tuple[Any, ...]]:
    return live.sql("SELECT id, price, input_tokens, output_tokens, account_id FROM billing_ledgerentry")


def test_the_leaver(live: Live, leaver: Leaver, model: str, tmp_path: Path) -> None:
    here, there = live.run["url"].rstrip("/"), live.another_web()
    collection = leaver.post("collections/", json={"name": f"About the {WORD}"})["id"]
    document = leaver.post(
        f"collections/{collection}/documents/",
        files={"file": ("n.txt", f"The {WORD} is a bird of the sea.".encode())},
    )["id"]
    until(lambda: leaver.get(f"documents/{document}/")["status"] == "ready" or None, "the document is read")
    conversation = leaver.post("conversations/", json={"title": WORD, "collections": [collection]})["id"]
    leaver.post(
        f"conversations/{conversation}/turns/",
        json={"text": f"What is a {WORD}?", "stream": False, "max_output_tokens": 16},
    )

    # Exported while they are still there.
    manage(live, "person_export", leaver.email, str(tmp_path / "mine"))
    exported = b"".join(p.read_bytes() for p in (tmp_path / "mine").rglob("*") if p.is_file())
    assert exported.count(WORD.encode()) > 4
    assert leaver.key.encode() not in exported

    # Two answers under way, each in another process.
    chat = Reading(
        leaver, there, f"/api/v1/conversations/{conversation}/turns/",
        {"text": LONG, "model": model, "collections": [], "max_output_tokens": 9000},
    )  # fmt: skip
    plain = Reading(
        leaver, here, "/v1/chat/completions",
        {"model": model, "messages": [{"role": "user", "content": LONG}], "stream": True, "max_tokens": 9000},
    )  # fmt: skip
    until(lambda: (chat.begun and plain.begun) or None, "both answers are being written", 180)
    assert leaver.status(here) == leaver.status(there) == 200
    assert {place.partition(" ")[0] for place in _places(live)} == {"table", "key", "file"}

    before = _entries(live)
    told = json.loads(manage(live, "person_erase", leaver.email, "--yes", "--json"))
    chat.join(30)
    plain.join(30)
    assert not chat.is_alive()
    assert not plain.is_alive()
    assert [chat.ended_at is None, plain.ended_at is None] == [False, False], (
        "a stream broke off without an end"
    )
    assert (chat.stream.names[-1], chat.stream.names.count("error")) == ("error", 1)
    assert "no longer valid" in plain.raw
    assert leaver.status(here) == leaver.status(there) == 401

    assert _places(live) == []
    counts = told["counts"]
    assert (counts["conversations"], counts["turns"], counts["documents"], counts["keys"]) == (1, 2, 1, 1)
    assert (counts["originals"], counts["private_collections"], counts["streams_ended"]) == (1, 1, 1)
    # What they used is booked and stays, under an account that is nobody's now.
    mine = "SELECT count(*) FROM billing_ledgerentry WHERE account_id = %s"
    assert live.sql(mine, leaver.account)[0][0] >= 4
    assert live.sql("SELECT count(*) FROM accounts_user WHERE account_id = %s", leaver.account) == [(0,)]
    held = "SELECT count(*) FROM billing_reservation WHERE account_id = %s AND state = 'held'"
    assert live.sql(held, leaver.account) == [(0,)]
    assert set(before) <= set(_entries(live))
    manage(live, "ledger_verify")


def _revoke(leaver: Leaver) -> None:
    key = next(k["id"] for k in leaver.get("keys/")["items"] if leaver.key.startswith(k["prefix"]))
    done = httpx.delete(
        f"{leaver.live.run['url'].rstrip('/')}/api/v1/keys/{key}/", headers=leaver.headers, timeout=30
    )
    assert done.status_code == 204, done.text


def _suspend(leaver: Leaver) -> None:
    """As the database has it; who told it is nobody's concern."""
    leaver.live.sql("UPDATE accounts_user SET is_active = false WHERE account_id = %s", leaver.account)


@pytest.mark.parametrize("end", [_revoke, _suspend])
def test_streams_and_keys_are_dead_within_a_second_on_every_process(
    live: Live, leaver: Leaver, model: str, end: Callable[[Leaver], None], capsys: pytest.CaptureFixture[str]
) -> None:
    urls = [live.run["url"].rstrip("/"), *live.more_webs(2)]
    conversation = leaver.post("conversations/", json={"collections": []})["id"]
    asked = Reading(
        leaver, urls[1], f"/api/v1/conversations/{conversation}/turns/",
        {"text": LONG, "model": model, "collections": [], "max_output_tokens": 9000},
    )  # fmt: skip
    plain = Reading(
        leaver, urls[0], "/v1/chat/completions",
        {"model": model, "messages": [{"role": "user", "content": LONG}], "stream": True, "max_tokens": 9000},
    )  # fmt: skip
    until(lambda: (asked.begun and plain.begun) or None, "both answers are being written", 180)
    turn = asked.stream.body("turn")["turn_id"]
    readers = [Reading(leaver, url, f"/api/v1/turns/{turn}/events/") for url in urls]
    until(lambda: all(reader.begun for reader in readers) or None, "every process shows the turn")

    # Every process remembers the key from now on.
    assert [leaver.status(url) for url in urls] == [200] * 3
    began = time.monotonic()
    end(leaver)
    # By process, when the last request was sent that its key still opened.
    opened = dict.fromkeys(urls, 0.0)
    shut: set[str] = set()
    while len(shut) < len(urls):
        for url in set(urls) - shut:
            sent = time.monotonic() - began
            if leaver.status(url) == 401:
                shut.add(url)
            else:
                opened[url] = sent
    streams = [asked, plain, *readers]
    for stream in streams:
        stream.join(30)
    assert None not in [stream.ended_at for stream in streams], "a stream broke off without an end"
    assert [stream.stream.names[-1] for stream in (asked, *readers)] == ["error"] * 4
    assert "no longer valid" in plain.raw
    late = [stream.ended_at - began for stream in streams]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{end.__name__[1:]}: streams ended after {', '.join(f'{s * 1000:.0f}' for s in sorted(late))} ms, "
            f"keys last opened after {', '.join(f'{s * 1000:.0f}' for s in sorted(opened.values()))} ms\n"
        )
    assert max(*late, *opened.values()) <= 1.0

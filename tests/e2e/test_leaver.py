"""Somebody leaves a running installation: exported, cut off in mid-answer, erased, and nowhere to be found."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
from psycopg import sql

from tests.e2e.live import Live, Stream, events_of, until
from tests.stack import PROCESS_ENV, REPOSITORY

pytestmark = [pytest.mark.live, pytest.mark.prove]
WORD = "quixotrophe"
LONG = f"Write a very long story about the {WORD} and the sea, with many chapters."
EMAIL = "leaver@example.org"
MAKE = f"""
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.accounts.models import User
from app.accounts.selectors import ALL_SCOPES
boss = User.objects.filter(is_staff=True).first()
user = user_create(email="{EMAIL}", password="correct horse battery", name="Lea Ver")
own = user.default_team
team = team_create(name="Those who stay", owner=boss)
membership_set(team=team, user=user, role="member")
_, plain = key_create(name="a key", team_id=own.id, user_id=user.id, scopes=list(ALL_SCOPES))
import json
print(json.dumps(dict(key=plain, own=str(own.id), team=str(team.id), account=str(user.account_id))))
"""


@dataclass
class Leaver:
    """The person as an HTTP client, and the ids that outlive them."""

    live: Live
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
def leaver(live: Live) -> Leaver:
    told = json.loads(manage(live, "shell", "--no-imports", "-c", MAKE).splitlines()[-1])
    return Leaver(live, **told)


class Reading(threading.Thread):
    """A stream that is read to its end beside the test."""

    def __init__(self, leaver: Leaver, url: str, path: str, body: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.request = {"url": f"{url}{path}", "json": body, "headers": leaver.headers}
        self.raw = ""
        self.stream = Stream()
        self.start()

    def run(self) -> None:
        with httpx.stream("POST", timeout=120, **self.request) as response:
            if "/v1/chat/" in str(response.url):
                for line in response.iter_lines():
                    self.raw += f"{line}\n"
            else:
                for event in events_of(response):
                    self.stream.events.append(event)

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


def _places(live: Live) -> list[str]:
    """Where the word is: tables, keys of the broker, files but for the database's and the broker's own."""
    word = WORD.encode()
    found = [f"table {table}" for table, rows in _dump(live) if word in rows.lower()]
    broker = redis.Redis.from_url(live.run["redis_url"])
    found += [f"key {key!r}" for key in broker.scan_iter() if word in (broker.dump(key) or b"").lower()]
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


def test_the_leaver(live: Live, leaver: Leaver, tmp_path: Path) -> None:
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
    model = leaver.get("models/")["items"][0]["id"]

    # Exported while they are still there.
    manage(live, "person_export", EMAIL, str(tmp_path / "mine"))
    exported = b"".join(p.read_bytes() for p in (tmp_path / "mine").rglob("*") if p.is_file())
    assert exported.count(WORD.encode()) > 4
    assert leaver.key.encode() not in exported

    # Two answers under way, each in another process.
    chat = Reading(
        leaver, there, f"/api/v1/conversations/{conversation}/turns/",
        {"text": LONG, "collections": [], "max_output_tokens": 900},
    )  # fmt: skip
    plain = Reading(
        leaver, here, "/v1/chat/completions",
        {"model": model, "messages": [{"role": "user", "content": LONG}], "stream": True, "max_tokens": 900},
    )  # fmt: skip
    until(lambda: (chat.begun and plain.begun) or None, "both answers are being written", 180)
    assert leaver.status(here) == leaver.status(there) == 200
    assert {place.partition(" ")[0] for place in _places(live)} == {"table", "key", "file"}

    before = _entries(live)
    told = json.loads(manage(live, "person_erase", EMAIL, "--yes", "--json"))
    chat.join(30)
    plain.join(30)
    assert not chat.is_alive()
    assert not plain.is_alive()
    assert chat.stream.names[-1] == "error"
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

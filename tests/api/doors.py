"""Every route of the product as a door, and somebody who knocks at it; for tests/api/test_every_door.py."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import URLPattern, get_resolver

from app.accounts.models import User
from app.api.stream import handler
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from tests.api.scripted import application, bearer
from tests.factories import IssuedKey

QUESTION = "Which word opens the vault?"
Ids = dict[str, object]
"""By the name that routes give them."""


@dataclass(frozen=True)
class Door:
    """One method of one route; `path` holds a field for each part of the address that is an id."""

    method: str
    path: str
    streams: bool = False

    @property
    def fields(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)


_METHODS = ("get", "post", "put", "patch", "delete")
_SEGMENTS = {"conversations": "conversation_id", "turns": "turn_id", "documents": "document_id"} | {
    "collections": "collection_id",
    "models": "model",
}


def _django(patterns: list[Any], prefix: str = "") -> Iterator[Door]:
    for found in patterns:
        text = prefix + str(found.pattern)
        if not isinstance(found, URLPattern):
            yield from _django(found.url_patterns, text)
            continue
        view = getattr(found.callback, "cls", None) or getattr(found.callback, "view_class", None)
        theirs = (view or found.callback).__module__.startswith(("allauth", "django."))
        # Sign-in is tried by its own package and by tests/api/accounts, the administration by tests/api/admin; a twin
        # without its last slash is the same view.
        # Figures of the process are for this machine and name nothing.
        if (
            theirs
            or text.startswith(("admin/", "metrics"))
            or (found.name or "").endswith(("-bare", "-slash"))
        ):
            continue
        path = re.sub(r"<(?:str:number)>", "{receipt}", text)
        path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)
        methods = [m for m in _METHODS if hasattr(view, m)] if view else ["get", "post"]
        yield from (Door(method, path) for method in methods if "^" not in path)


def _streamed() -> Iterator[Door]:
    for method, pattern, _ in handler._ROUTES:
        path = pattern.pattern.replace("/?", "/").replace(handler._ID, "(.+?)")
        path = re.sub(r"/(\w+)/\(\.\+\?\)", lambda m: f"/{m[1]}/{{{_SEGMENTS[m[1]]}}}", path)
        yield Door(method.lower(), path, streams=True)


DOORS = sorted(
    {*_django(get_resolver().url_patterns), *_streamed()}, key=lambda door: (door.path, door.method)
)


def body_of(ids: Ids) -> dict[str, Any]:
    """Whatever any route takes, with these ids wherever a body may name one."""
    return {
        "text": QUESTION, "query": QUESTION, "input": "x", "name": "x", "title": "x", "url": "https://w.example/",
        "messages": [{"role": "user", "content": QUESTION}], "stream": False, "model": ids["model"],
        "collections": [str(ids["collection_id"])], "attachments": [str(ids["document_id"])],
        "parent": str(ids["turn_id"]), "turn": str(ids["turn_id"]), "assistant": str(ids["assistant_id"]),
        "team": str(ids["team_id"]), "shared_with": [str(ids["team_id"])], "conversation": str(ids["conversation_id"]),
        "filters": {"documents": [str(ids["document_id"])]}, "principal": f"user:{uuid4()}", "verb": "manage",
        "audience": "everyone", "rating": "good", "grant": True, "limit_id": str(ids["budget_id"]), "role": "owner",
        "scope": "team", "unit": "money", "limit": "1", "period": "month", "email": "x@example.org",
    }  # fmt: skip


def query_of(ids: Ids) -> dict[str, str]:
    """Whatever a list or a page is narrowed by."""
    named = {"team": "team_id", "collection": "collection_id", "key": "key_id", "person": "user_id"}
    return {name: str(ids[field]) for name, field in named.items()} | {
        "thread": str(ids["conversation_id"]),
        "turn": str(ids["turn_id"]),
        "q": "vault",
    }


Answer = tuple[int, str]


@dataclass
class Knocker:
    """Somebody at the doors: with a key, or signed in with a browser where there is a page."""

    key: IssuedKey
    browser: User | None = None

    def knock(self, door: Door, ids: Ids) -> Answer:
        missing = set(door.fields) - set(ids)
        assert not missing, f"{door.path}: say in `house` which foreign thing stands for {missing}"
        path = door.path.format(**ids)
        return self._streamed(door, path, ids) if door.streams else self._asked(door, path, ids)

    def _asked(self, door: Door, path: str, ids: Ids) -> Answer:
        client, wishes = Client(), {"headers": bearer(self.key)}
        if self.browser is not None:
            wishes = {}
            client.force_login(self.browser)
        if door.method == "get":
            answer = client.get(path, query_of(ids), **wishes)
        elif path.startswith("/api/"):
            answer = getattr(client, door.method)(
                path, body_of(ids), content_type="application/json", **wishes
            )
        else:
            answer = client.post(path, body_of(ids), **wishes)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        told = [f"{name}: {answer.headers.get(name)}" for name in _TELLING]
        return answer.status_code, "\n".join((*told, content.decode(errors="replace")))

    def _streamed(self, door: Door, path: str, ids: Ids) -> Answer:
        async def one() -> httpx.Response:
            transport = httpx.ASGITransport(app=application)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                sent = {"json": body_of(ids)} if door.method == "post" else {}
                asked = client.request(door.method.upper(), path, headers=bearer(self.key), **sent)
                # What lets somebody in would go on for as long as one listens.
                answer = await asyncio.wait_for(asked, 20)
                await client_close()
                await redis_close()
                return answer

        answer = async_to_sync(one)()
        return answer.status_code, answer.text


_TELLING = ("Content-Type", "Content-Disposition", "ETag", "Location", "Retry-After", "X-Tessera-Receipt")
_BLANK = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[EPR]-\d{8}-[0-9A-F]{10}"
    r"|\d{4}-\d\d-\d\dT[\d:.+Z]+|csrfmiddlewaretoken\" value=\"\w+|csrf-token\" content=\"\w+"
    r"|assistant/\w+|(?m:^(?:process|python)_.*$)"
)


def plain(answer: Answer) -> Answer:
    """Without what differs between any two answers."""
    return answer[0], _BLANK.sub("…", answer[1])


def unknown(ids: Ids) -> Ids:
    """As many ids of the same kinds, of nothing."""
    kinds: dict[type, Callable[[Any], object]] = {UUID: lambda _: uuid4(), int: lambda known: known}
    others = {name: kinds.get(type(value), lambda known: known)(value) for name, value in ids.items()}
    return others | {"receipt": "R-20200101-0123456789", "model": "assistant/nobodys"}

"""Whatever somebody sends that the schema describes, or nearly: no mistake of ours, and only answers it describes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import cycle
from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx
import pytest
import requests
import schemathesis
import yaml
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.api.stream import documents
from app.api.stream.handler import route
from app.billing.models import Budget
from inference_client.testing.fault_server import Script
from tests.api.scripted import call
from tests.factories import (
    IssuedKey,
    collection_make,
    conversation_make,
    document_ready_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)
from tests.stack import REPOSITORY

SCHEMA = REPOSITORY / "app" / "api" / "schema.yaml"
EXAMPLES = int(os.environ.get("TESSERA_FUZZ", "100"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
IDS = {
    "collections": "collection", "assistants": "assistant", "conversation": "conversation", "parent": "turn",
    "attachments": "document", "team": "team", "team_id": "team", "assistant": "assistant", "key": "key",
    "request_id": "limit_request",
}  # fmt: skip
"""By field of a body, query or path: which of the things that are there it may name. Others are called as they are."""


class Case(Protocol):
    """As much of schemathesis' as is used here."""

    path_parameters: dict[str, Any]
    query: dict[str, Any]
    body: Any

    def as_transport_kwargs(self, base_url: str, headers: Mapping[str, str]) -> dict[str, Any]: ...
    def validate_response(self, response: requests.Response | httpx.Response, checks: list[Any]) -> None: ...


@cache
def schema() -> Any:
    return schemathesis.openapi.from_path(SCHEMA)


def _operations() -> list[tuple[str, str]]:
    """(method, path) of all that the schema describes."""
    paths = yaml.load(SCHEMA.read_text(), yaml.CSafeLoader)["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


@dataclass(frozen=True)
class World:
    """Somebody who owns one of each, and the callers that try: its owner, a stranger, the installation's staff."""

    keys: list[IssuedKey]
    ids: dict[str, str]

    def named(self, name: str, value: Any) -> Any:
        """A thing that is there in place of a made-up id."""
        kind = IDS.get(name, name.removesuffix("_id"))
        known = self.ids.get(kind, value)
        return [known for _ in value] if isinstance(value, list) else known


@pytest.fixture(autouse=True)
def brief(monkeypatch) -> None:
    """A collection's events go on for as long as one listens; here each listener leaves after a look."""
    looks = cycle([False, True])
    monkeypatch.setattr(documents, "runs", lambda: SimpleNamespace(draining=next(looks)))
    monkeypatch.setattr(documents, "QUIET_SECONDS", 0)
    monkeypatch.setattr(documents, "BUSY_SECONDS", 0)


@pytest.fixture
def world(originals_dir, chat_target) -> World:
    user, stranger, staff = user_make(), user_make(), user_make(is_staff=True)
    team = team_make(owner=user)
    keys = [key_make(user=who, team=who.default_team) for who in (user, stranger, staff)]
    collection = collection_make(team=team, user=user)
    document = document_ready_make(collection=collection, pages=("First page.", "Second page."))
    conversation = conversation_make(user=user, team=team)
    turn = turn_make(conversation=conversation)
    passage_make(turn=turn, collection=collection, text="First page.")
    ids = {
        "team": team.id, "key": keys[0].row.id, "collection": collection.id, "document": document.id,
        "conversation": conversation.id, "turn": turn.id, "budget": Budget.objects.first().id, "number": 1,
    }  # fmt: skip
    made = World(keys, {name: str(value) for name, value in ids.items()})
    budget = {"scope": "team", "team": str(team.id), "unit": "tokens", "limit": "100", "period": "month"}
    for kind, path, body in (
        ("assistant", "assistants/", {"name": "Clerk", "model": chat_target.public_name}),
        ("share", f"conversations/{conversation.id}/shares/", {}),
        ("export", "me/export/", {}),
        ("budget", "budgets/", budget),
    ):
        request = requests.Request(
            "POST", f"http://127.0.0.1/api/v1/{path}", headers=_bearer(keys[0]), json=body
        )
        answer = _sent(request.prepare())
        assert answer.status_code in {201, 202}, answer.text
        made.ids[kind] = answer.json()["id"]
    return made


def _bearer(key: IssuedKey) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.plain}"}


def _sent(request: requests.PreparedRequest) -> httpx.Response:
    """The answer of whichever tier serves it."""
    there = urlsplit(str(request.url))
    body = request.body.encode() if isinstance(request.body, str) else request.body or b""
    scope: Any = {"type": "http", "method": request.method, "path": unquote(there.path)}
    if route(scope) is not None:
        wishes = {"headers": dict(request.headers), "content": body, "only": "Test chat server"}
        return call(str(request.method), str(request.url), Script(), **wishes)[0]
    answer: Any = Client(raise_request_exception=False).generic(
        str(request.method), f"{there.path}?{there.query}", body,
        content_type=request.headers.get("Content-Type", ""),
        headers={name: value for name, value in request.headers.items() if name.lower() != "content-type"},
    )  # fmt: skip
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    asked = httpx.Request(str(request.method), str(request.url), headers=dict(request.headers), content=body)
    found = httpx.Response(answer.status_code, headers=dict(answer.items()), content=content, request=asked)
    found.elapsed = timedelta(0)  # nobody measured, and it is asked for
    return found


def _real(world: World, value: Any, name: str = "") -> Any:
    """A body with ids of things that are there."""
    if isinstance(value, dict):
        return {key: _real(world, item, key) for key, item in value.items()}
    return world.named(name, value) if name in IDS else value


def _fuzz(world: World, method: str, path: str, examples: int) -> None:
    operation = schema()[path][method]
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases, key=st.sampled_from(world.keys), known=st.sampled_from([True, True, False]))
    def one(case: Case, key: IssuedKey, known: bool) -> None:
        if known:
            case.path_parameters = {n: world.named(n, v) for n, v in (case.path_parameters or {}).items()}
            case.body = _real(world, case.body)
        wanted = case.as_transport_kwargs(base_url="http://127.0.0.1", headers=_bearer(key))
        with transaction.atomic():
            answer = _sent(requests.Request(**wanted).prepare())
            transaction.set_rollback(True)
        case.validate_response(answer, checks=CHECKS)

    one()


@pytest.mark.django_db
def test_a_few_requests_to_every_route(world):
    found: dict[str, str] = {}
    for method, path in _operations():
        try:
            _fuzz(world, method, path, 2)
        except FailureGroup as exc:
            found[f"{method} {path}"] = str(exc)
    assert not found, "\n".join(f"{name}: {told}" for name, told in found.items())


@pytest.mark.prove
@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path"), _operations())
def test_many_requests_to_each_route(world, method, path):
    _fuzz(world, method, path, EXAMPLES)

"""What holds for every route: a key, both slash forms, one 404, repeatable POSTs."""

import json
import re
from uuid import uuid4

import pytest
from django.urls import URLPattern
from rest_framework.test import APIClient

from app.api import urls
from app.api.models import JobWebhook
from app.billing.budgets import budget_set
from app.chat.models import Assistant
from app.common.logs import JsonFormatter
from app.common.models import uuid7
from tests.factories import collection_make, conversation_make, document_make, key_make, turn_make, user_make

pytestmark = pytest.mark.django_db
PUBLIC = {"schema", "docs", "healthz", "readyz", "metrics"}


def _routes():
    """(path with {id}, method) of every route that needs a caller."""
    for pattern in urls.urlpatterns:
        if isinstance(pattern, URLPattern) and pattern.name and hasattr(pattern.callback, "cls"):
            if pattern.name.removesuffix("-bare") in PUBLIC:
                continue
            text = re.sub(r"<int:\w+>", "1", re.sub(r"<uuid:\w+>", "{id}", str(pattern.pattern)))
            for method in ("get", "post", "put", "patch", "delete"):
                if hasattr(pattern.callback.cls, method):
                    yield f"/{text}", method


ROUTES = sorted(_routes())
# The twin without the last slash is the same view; statements, requests for more and shares have tests of their own.
ELSEWHERE = ("/api/v1/limit-requests/", "/api/v1/statements/", "/api/v1/shares/")
WITH_ID = [
    route
    for route in ROUTES
    if "{id}" in route[0] and route[0].endswith("/") and not route[0].startswith(ELSEWHERE)
]


def _call(client, method, path):
    if path.rstrip("/").endswith(("documents", "file", "attachments")):
        return getattr(client, method)(path, {}, format="multipart")
    return getattr(client, method)(path, {}, format="json")


def test_there_are_routes():
    assert len(ROUTES) > 50


@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_a_wrong_key_is_refused_everywhere(path, method):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Bearer tsr_wrong")
    answer = _call(client, method, path.format(id=uuid4()))
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "not_authenticated"


@pytest.mark.parametrize(("path", "method"), WITH_ID)
def test_the_unknown_and_the_foreign_look_the_same(client_for, api_key, originals_dir, path, method):
    stranger = user_make()
    team = stranger.default_team
    collection = collection_make(team=team, user=stranger)
    foreign = {
        "collections": collection.pk,
        "documents": document_make(collection=collection).pk,
        "conversations": (conversation := conversation_make(user=stranger, team=team)).id,
        "turns": turn_make(conversation=conversation).id,
        "keys": key_make(user=stranger, team=team).row.id,
        "assistants": Assistant.objects.create(team=team, name="Theirs", slug="theirs", model="m").id,
        "webhooks": JobWebhook.objects.create(user=stranger, name="w", url="https://w.example", events=[]).id,
        "me": team.id,
        "budgets": budget_set(scope="team", unit="money", limit=1, period="month", team_id=team.id),
    }[path.split("/")[3]]
    unknown = uuid7()
    answers = []
    for identity in (foreign, unknown):
        answer = _call(client_for(api_key), method, path.format(id=identity))
        error = answer.json()["error"]
        error.pop("request_id")
        answers.append((answer.status_code, str(error).replace(str(identity), "ID")))
    assert answers[0] == answers[1]
    # Where the body is read first, both are refused for it alike; everywhere else it is the one 404.
    assert answers[0][0] == 404 or method in {"post", "put"}


@pytest.mark.parametrize(
    "pattern", [p for p in urls.urlpatterns if getattr(p, "name", None)], ids=lambda p: p.name
)
def test_every_post_takes_an_idempotency_key(pattern):
    view = getattr(pattern.callback, "cls", None)
    post = getattr(view, "create", None) or getattr(view, "post", None)
    assert post is None or post.is_idempotent


@pytest.mark.parametrize("path", ["nonsense/", "collections/not-an-id/", "", "collections/1/documents/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_a_path_that_is_nowhere_answers_in_the_same_shape(client_for, api_key, path, method):
    answer = getattr(client_for(api_key), method)(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_a_method_that_a_route_does_not_take_is_named(client_for, api_key):
    answer = client_for(api_key).delete("/api/v1/me/")
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        ("{", "application/json", 400, "malformed"),
        ("[]", "application/json", 422, "invalid"),
        ('{"title": "a\\u0000b"}', "application/json", 422, "invalid"),
        ('{"title": "\\ud800"}', "application/json", 422, "invalid"),
        ("title=x", "text/csv", 415, "unsupported_media_type"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_its_reason(
    client_for, api_key, body, content_type, status, code
):
    answer = client_for(api_key).generic("POST", "/api/v1/conversations/", body, content_type=content_type)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["request_id"] == answer["X-Request-Id"]


@pytest.mark.parametrize("path", ["/api/v1/nope/", "/nope/"])
def test_a_refusal_is_one_line_of_the_log_with_the_id_of_its_answer(path, caplog):
    caplog.handler.setFormatter(JsonFormatter())
    answer = APIClient().get(path)
    (line,) = [json.loads(text) for text in caplog.text.splitlines()]
    assert (line["message"], line["request_id"]) == (f"Not Found: {path}", answer["X-Request-Id"])


def test_the_icon_that_browsers_ask_for_on_their_own_is_there():
    answer = APIClient().get("/favicon.ico")
    assert (answer.status_code, answer["Location"].startswith("/static/common/icon")) == (302, True)


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v2/", "/api/v1/keys/a%0Ab/", "/api/v1/nothing%0A"])
def test_whatever_is_no_route_of_the_api_is_answered_in_its_own_shape(client_for, api_key, path):
    answer = client_for(api_key).get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")

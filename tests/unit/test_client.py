"""The generated client: what the schema gives, and how it treats refusals."""

import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from clients.python import tessera_client
from clients.python.tessera_client import Tessera, TesseraError, every
from tests.stack import REPOSITORY
from tools.make_client import type_of

Answer = Callable[[httpx.Request], httpx.Response]


def _client(answer: Answer) -> Tessera:
    return Tessera("http://test/", key="tsk_x", http=httpx.Client(transport=httpx.MockTransport(answer)))


def _refusal(status: int, code: str, *, retryable: bool, wait: str | None = None) -> httpx.Response:
    error = {"code": code, "message": "no", "detail": {}, "request_id": "r", "retryable": retryable}
    return httpx.Response(status, json={"error": error}, headers={"retry-after": wait} if wait else {})


def test_the_committed_client_is_the_generated_one() -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "tools" / "make_client.py"), "--check"],
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "uuid"}, "str"),
        ({"type": "integer", "nullable": True}, "int | None"),
        ({"$ref": "#/components/schemas/Me"}, "Me"),
        ({"allOf": [{"$ref": "#/components/schemas/Money"}], "nullable": True}, "Money | None"),
        ({"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}, "A | B"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"enum": ["a", "b"], "type": "string"}, "Literal['a', 'b']"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "additionalProperties": {}}, "dict[str, Any]"),
        ({}, "Any"),
    ],
)
def test_a_schema_has_a_type(schema: dict, kind: str) -> None:
    assert type_of(schema) == kind


def test_what_is_retryable_is_tried_again_with_the_same_idempotency_key() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            return _refusal(503, "busy", retryable=True, wait="0")
        return httpx.Response(201, json={"id": "c"})

    assert _client(answer).conversations_create({"title": "x"})["id"] == "c"
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_what_is_not_retryable_is_asked_once_and_says_why() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return _refusal(402, "budget_exhausted", retryable=False, wait="3600")

    with pytest.raises(TesseraError) as caught:
        _client(answer).precount({"text": "x"})
    assert asked == ["/api/v1/precount/"]
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (
        402,
        "budget_exhausted",
        3600,
    )


def test_a_stream_that_is_refused_raises_and_one_that_is_not_gives_events() -> None:
    frames = b': hello\n\nid: 1\nevent: turn\ndata: {"turn_id": "t"}\n\nid: 2\nevent: done\ndata: {}\n\n'

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers.get("last-event-id") == "9":
            return _refusal(404, "not_found", retryable=False)
        return httpx.Response(200, content=frames, headers={"content-type": "text/event-stream"})

    client = _client(answer)
    with client.turns_events("t") as events:
        assert [(e.id, e.name) for e in events] == [(1, "turn"), (2, "done")]
    with pytest.raises(TesseraError, match="not_found"), client.turns_events("t", last_event_id="9"):
        pass


def test_pages_are_one_list() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        second = request.url.params.get("cursor") == "c2"
        return httpx.Response(
            200, json={"items": [3] if second else [1, 2], "next": None if second else "c2"}
        )

    assert list(every(_client(answer).conversations_list, limit=2)) == [1, 2, 3]


def test_an_answer_that_is_no_json_of_ours_is_a_refusal_too() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(502, text="<html>proxy</html>")

    with pytest.raises(tessera_client.TesseraError, match="proxy"):
        _client(answer).me()

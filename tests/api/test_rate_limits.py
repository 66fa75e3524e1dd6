"""Rate limits as callers of `/v1` and REST see them."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from app.billing.rate_limits import rate_limit_set
from app.billing.services import budget_set
from app.gate import rates
from tests.api.scripted import call
from tests.factories import IssuedKey
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = {
    f"x-ratelimit-{what}-{unit}"
    for what in ("limit", "remaining", "reset")
    for unit in ("requests", "tokens")
}


@pytest.fixture(autouse=True)
def _fresh(broker: redis.Redis) -> Iterator[None]:
    rates.forget()
    yield
    rates.forget()


def chat(target: Any, key: IssuedKey, *scripts: Any, **body: Any) -> Any:
    asked = {"model": target.public_name, "messages": [{"role": "user", "content": "x"}], "max_tokens": 8}
    return call("POST", "/v1/chat/completions", *scripts, key=key, json=asked | body)[0]


@pytest.mark.parametrize("streamed", [True, False])
def test_every_answer_says_how_the_limits_stand(chat_target: Any, api_key: IssuedKey, streamed: bool) -> None:
    answered = chat(chat_target, api_key, said("ab"), stream=streamed)
    listed, _ = call("GET", "/v1/models", key=api_key)
    unread, _ = call("POST", "/v1/chat/completions", key=api_key, json={"model": 1})
    nowhere, _ = call("GET", "/v1/nothing", key=api_key)
    assert [r.status_code for r in (answered, listed, unread, nowhere)] == [200, 200, 400, 404]
    for response in (answered, listed, unread, nowhere):
        assert set(response.headers) >= NAMES | {"x-request-id"}
    assert answered.headers["x-ratelimit-limit-requests"] == "60000"


def test_too_fast_is_a_429_that_says_when(chat_target: Any, api_key: IssuedKey) -> None:
    rate_limit_set(scope="key", key_id=api_key.row.id, requests=1, tokens=None, streams=None)
    assert chat(chat_target, api_key, said("ab")).status_code == 200
    refused = chat(chat_target, api_key)
    error = refused.json()["error"]
    assert (refused.status_code, error["type"], error["code"]) == (
        429,
        "rate_limit_exceeded",
        "rate_limit_exceeded",
    )
    assert 0 < int(refused.headers["retry-after-ms"]) <= 60_000
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert "x-should-retry" not in refused.headers
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert error["detail"]["scope"] == "key"
    assert "of the key “test key”" in error["message"]


def test_what_a_budget_refused_was_not_counted(chat_target: Any, api_key: IssuedKey) -> None:
    rate_limit_set(scope="key", key_id=api_key.row.id, requests=2, tokens=None, streams=1)
    budget_set(scope="key", unit="requests", limit=0, period="day", key_id=api_key.row.id)
    rates.forget()
    for _ in range(4):
        refused = chat(chat_target, api_key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
        assert refused.headers["x-should-retry"] == "false"
    listed, _ = call("GET", "/v1/models", key=api_key)
    assert listed.headers["x-ratelimit-remaining-requests"] == "2"

"""The same key with the same body gives the same result, once."""

from datetime import timedelta
from typing import Any

import pytest

from app.accounts.models import ApiKey
from app.api.models import IdempotencyKey
from app.api.services import (
    fingerprint_of,
    idempotency_claim,
    idempotency_finish,
    idempotency_prune,
    idempotency_release,
)
from app.chat.models import Conversation
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from tests.factories import key_make

pytestmark = pytest.mark.django_db
CONVERSATIONS = "/api/v1/conversations/"
OWNER: dict[str, Any] = {"owner": "user:1", "key": "k"}


def _post(client, body, key="key-1", path=CONVERSATIONS):
    return client.post(path, body, format="json", HTTP_IDEMPOTENCY_KEY=key)


def test_a_repeated_post_makes_one_thing(client_for, api_key):
    first, second = (_post(client_for(api_key), {"title": "Pumps"}) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second["Location"] == first["Location"]
    assert (first.get("Idempotent-Replayed"), second["Idempotent-Replayed"]) == (None, "true")
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "path"), [({"title": "Valves"}, CONVERSATIONS), ({"title": "Pumps"}, "/api/v1/collections/")]
)
def test_another_body_or_route_under_the_same_key_is_refused(client_for, api_key, body, path):
    _post(client_for(api_key), {"title": "Pumps"})
    answer = _post(client_for(api_key), body, path=path)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_key_reused"


@pytest.mark.parametrize("strange", ["84107298708059897085409651326976", '"\\ud974"', "1e400"])
def test_a_body_may_hold_any_number_and_half_a_character(client_for, api_key, strange):
    body = f'{{"title": "Pumps", "more": {{"x": {strange}}}}}'
    sent = {"content_type": "application/json", "HTTP_IDEMPOTENCY_KEY": "key-1"}
    answers = [client_for(api_key).post(CONVERSATIONS, body, **sent) for _ in range(2)]
    assert [answer.status_code for answer in answers] in ([201, 201], [400, 400])


def test_the_order_of_fields_does_not_matter(client_for, api_key):
    _post(client_for(api_key), {"title": "Pumps", "model": "a"})
    assert _post(client_for(api_key), {"model": "a", "title": "Pumps"}).status_code == 201
    assert Conversation.objects.count() == 1


def test_two_callers_do_not_share_keys(client_for, api_key, user, team):
    _post(client_for(api_key), {"title": "Pumps"})
    assert _post(client_for(key_make(user=user, team=team)), {"title": "Valves"}).status_code == 201
    assert Conversation.objects.count() == 2


def test_a_refused_post_leaves_its_key_free(client_for, api_key):
    assert _post(client_for(api_key), {"level": "secret"}).status_code == 422
    assert _post(client_for(api_key), {"title": "Pumps"}).status_code == 201


@pytest.mark.parametrize(("key", "status"), [("x" * 200, 201), ("x" * 201, 422), ("", 422)])
def test_a_key_has_a_length(client_for, api_key, key, status):
    assert _post(client_for(api_key), {}, key=key).status_code == status


def test_a_secret_in_a_kept_answer_is_encrypted(client_for, api_key):
    first, second = (_post(client_for(api_key), {"name": "laptop"}, path="/api/v1/keys/") for _ in range(2))
    assert first.json()["key"] == second.json()["key"]
    assert ApiKey.objects.filter(name="laptop").count() == 1
    assert first.json()["key"] not in str(IdempotencyKey.objects.get().response)


def test_a_search_is_made_anew_and_never_kept(client_for, api_key, chat_target):
    body = {"query": "pumps", "collections": []}
    answers = [_post(client_for(api_key), body, path="/api/v1/search/") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert IdempotencyKey.objects.get().response is None
    assert _post(client_for(api_key), body | {"query": "valves"}, path="/api/v1/search/").status_code == 422


def test_a_claim_is_new_once_and_then_running_and_then_finished():
    turn_id = uuid7()
    claim = idempotency_claim(**OWNER, fingerprint="f", resource_id=turn_id)
    assert claim.is_new
    again = idempotency_claim(**OWNER, fingerprint="f", resource_id=uuid7())
    assert (again.is_new, again.is_running, again.resource_id) == (False, True, turn_id)
    idempotency_finish(**OWNER, status=202, response={"id": "x"})
    done = idempotency_claim(**OWNER, fingerprint="f")
    assert (done.is_running, done.status, done.response, done.resource_id) == (
        False,
        202,
        {"id": "x"},
        turn_id,
    )
    with pytest.raises(InvalidInput) as caught:
        idempotency_claim(**OWNER, fingerprint="g")
    assert caught.value.name == "idempotency_key_reused"


def test_a_released_claim_is_free_and_a_finished_one_is_not():
    idempotency_claim(**OWNER, fingerprint="f")
    idempotency_release(**OWNER)
    assert idempotency_claim(**OWNER, fingerprint="g").is_new
    idempotency_finish(**OWNER, status=200)
    idempotency_release(**OWNER)
    assert not idempotency_claim(**OWNER, fingerprint="g").is_new


@pytest.mark.parametrize(
    ("age", "names_a_resource", "finished", "is_new"),
    [
        (timedelta(minutes=1), False, False, False),
        (timedelta(minutes=3), False, False, True),
        (timedelta(minutes=3), True, False, False),
        (timedelta(hours=23), False, True, False),
        (timedelta(hours=25), False, True, True),
        (timedelta(hours=25), True, False, True),
    ],
)
def test_a_claim_of_a_request_that_died_is_taken_over(age, names_a_resource, finished, is_new):
    idempotency_claim(**OWNER, fingerprint="f", resource_id=uuid7() if names_a_resource else None)
    if finished:
        idempotency_finish(**OWNER, status=200)
    IdempotencyKey.objects.update(created_at=now() - age)
    assert idempotency_claim(**OWNER, fingerprint="f").is_new == is_new


def test_keys_older_than_a_day_are_removed():
    idempotency_claim(owner="user:1", key="old", fingerprint="f")
    IdempotencyKey.objects.update(created_at=now() - timedelta(hours=25))
    idempotency_claim(owner="user:1", key="new", fingerprint="f")
    assert idempotency_prune() == 1
    assert IdempotencyKey.objects.get().key == "new"


def test_parts_of_a_fingerprint_do_not_run_together():
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc")
    assert fingerprint_of("ab") == fingerprint_of(b"ab")

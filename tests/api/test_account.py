"""models/ and limits/: what I may use and what is left."""

from decimal import Decimal

import pytest

from app.accounts.services import key_create
from app.billing.services import budget_set
from app.chat.models import TurnState
from tests.factories import conversation_make, team_make, turn_make, user_make

pytestmark = pytest.mark.django_db


def test_a_model_shows_window_price_and_what_was_measured_here(client_for, api_key, user, team, chat_target):
    conversation = conversation_make(user=user, team=team)
    for ttft, speed in ((100.0, 20.0), (300.0, 40.0), (200.0, 30.0)):
        timing = {"ttft_ms": ttft, "tokens_per_second": speed}
        turn_make(conversation=conversation, deployment_id=chat_target.deployment_id, timing=timing)
    answer = client_for(api_key).get("/api/v1/models/").json()
    assert answer["next"] is None
    (model,) = answer["items"]
    assert model["id"] == chat_target.public_name
    assert model["context_window"] == 4096
    assert model["ttft_ms"] == 200.0
    assert model["tokens_per_second"] == 30.0
    assert model["status"] == "up"
    rates = {rate["component"]: rate for rate in model["price"]}
    assert rates["input"]["price"] == {"amount": "0.10000000", "currency": "EUR"}
    assert rates["output"]["per_units"] == 1_000_000


def test_what_is_unknown_of_a_model_is_null(client_for, api_key, chat_target):
    (model,) = client_for(api_key).get("/api/v1/models/").json()["items"]
    assert [model[name] for name in ("ttft_ms", "tokens_per_second", "region", "status")] == [None] * 4


def test_a_model_whose_last_turn_failed_says_so(client_for, api_key, user, team, chat_target):
    turn_make(
        conversation=conversation_make(user=user, team=team),
        deployment_id=chat_target.deployment_id,
        state=TurnState.FAILED,
    )
    (model,) = client_for(api_key).get("/api/v1/models/").json()["items"]
    assert model["status"] == "failing"


@pytest.mark.parametrize(("allowed", "count"), [(None, 1), ([], 0), (["another"], 0)])
def test_a_key_sees_only_the_models_it_may_use(client_for, user, team, chat_target, allowed, count):
    _, plain = key_create(name="k", team_id=team.id, user_id=user.id, scopes=["read"], models_allowed=allowed)
    assert len(client_for(plain).get("/api/v1/models/").json()["items"]) == count


def test_limits_name_scope_unit_and_what_remains(client_for, api_key, team, chat_target):
    budget_set(scope="team", unit="tokens", limit=1000, period="day", team_id=team.id, name="Research")
    items = client_for(api_key).get("/api/v1/limits/").json()["items"]
    (own,) = [item for item in items if item["scope"] == "team"]
    assert (own["unit"], own["period"], own["name"]) == ("tokens", "day", "Research")
    assert Decimal(own["limit"]) == Decimal(own["remaining"]) == 1000
    assert own["resets_at"].endswith("Z")
    assert {"installation", "allowance"} <= {item["scope"] for item in items}


def test_limits_of_another_team_of_mine_can_be_asked_for(client_for, api_key, user):
    other = team_make(owner=user)
    budget_set(scope="team", unit="requests", limit=7, period="month", team_id=other.id)
    items = client_for(api_key).get("/api/v1/limits/", {"team": str(other.id)}).json()["items"]
    assert [i["limit"] for i in items if i["scope"] == "team"] == ["7"]


def test_limits_of_a_foreign_team_are_not_found(client_for, api_key):
    foreign = team_make(owner=user_make())
    assert client_for(api_key).get("/api/v1/limits/", {"team": str(foreign.id)}).status_code == 404


def test_a_team_that_is_no_id_is_a_wrong_field(client_for, api_key):
    answer = client_for(api_key).get("/api/v1/limits/", {"team": "mine"})
    assert answer.status_code == 422
    assert "team" in answer.json()["error"]["detail"]["fields"]

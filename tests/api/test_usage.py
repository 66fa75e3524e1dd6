"""usage/: ledger sums, each only for whom they are meant."""

import csv
import io
import re
from decimal import Decimal

import pytest

from app.accounts.models import Role
from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer
from app.common.models import uuid7
from tests.factories import key_make, team_make, user_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("chat_target")]
USAGE = "/api/v1/usage/"


@pytest.fixture
def spent(chat_target):
    """Books one chat call of a key: input tokens at 0.10 a million."""

    def book(key, *, input_tokens=1_000_000):
        user = key.row.user
        identity = uuid7()
        payer = Payer(
            team_id=key.row.team_id,
            account_id=user.account_id if user else None,
            user_id=user.id if user else None,
            key_id=key.row.id,
        )
        reservation_hold(
            hold=Hold(
                reservation_id=identity,
                payer=payer,
                kind="chat",
                price_key=chat_target.price_key,
                input_tokens=input_tokens,
                deployment_id=chat_target.deployment_id,
            )
        )
        used = Buckets(input=input_tokens)
        model = chat_target.public_name
        reservation_settle(reservation_id=identity, attempts=[Attempt(buckets=used, requested_model=model)])

    return book


def _price(shown):
    return Decimal(shown["price"]["amount"])


def test_my_spend_is_shown_to_the_digit(client_for, api_key, spent):
    spent(api_key, input_tokens=12_345)
    spent(api_key, input_tokens=1)
    answer = client_for(api_key).get(USAGE).json()
    (day,) = answer["items"]
    assert day["price"] == answer["total"]["price"] == {"amount": "0.00123460", "currency": "EUR"}
    assert (day["entries"], day["requests"], day["input_tokens"]) == (2, 2, 12_346)
    assert day["cost"] is None


def test_nothing_spent_is_zero_and_not_unknown(client_for, api_key):
    answer = client_for(api_key).get(USAGE).json()
    assert answer["items"] == []
    assert (_price(answer["total"]), answer["total"]["entries"]) == (0, 0)


@pytest.mark.parametrize("group_by", ["day", "team", "person", "key", "model", "deployment", "kind"])
def test_sums_by_any_group_have_names_for_people(
    client_for, api_key, user, team, chat_target, spent, group_by
):
    spent(api_key)
    (item,) = client_for(api_key).get(USAGE, {"group_by": group_by}).json()["items"]
    names = {
        "team": team.name,
        "person": str(user),
        "key": api_key.row.name,
        "kind": "chat",
        "deployment": f"{chat_target.public_name} on Test chat server",
    }
    assert item["name"] == names.get(group_by, item["group"])
    assert _price(item) == Decimal("0.1")


def test_each_sees_what_is_theirs(client_for, spent):
    owner, member, staff = user_make(), user_make(), user_make(is_staff=True)
    team = team_make(owner=owner)
    member = user_make(team=team, role=Role.MEMBER)
    keys = {"owner": key_make(user=owner, team=team), "member": key_make(user=member, team=team)}
    keys["staff"] = key_make(user=staff, team=staff.default_team, scopes=("usage", "staff"))
    keys["team"] = key_make(user=None, team=team)
    for name, tokens in (("owner", 1_000_000), ("member", 2_000_000), ("team", 4_000_000)):
        spent(keys[name], input_tokens=tokens)

    def sum_of(name, query):
        answer = client_for(keys[name]).get(USAGE, query)
        return _price(answer.json()["total"]) * 10 if answer.status_code == 200 else answer.status_code

    whole = {"team": str(team.id)}
    assert [sum_of(name, {}) for name in ("owner", "member", "team")] == [1, 2, 4]
    assert [sum_of(name, whole) for name in ("owner", "member", "team", "staff")] == [7, 403, 403, 404]
    assert [sum_of(name, {"all": "true"}) for name in ("owner", "member", "staff")] == [403, 403, 7]
    assert sum_of("staff", whole | {"all": "true"}) == 7
    staff_view = client_for(keys["staff"]).get(USAGE, {"all": "true", "group_by": "person"}).json()
    assert {item["name"] for item in staff_view["items"]} >= {str(owner), str(member)}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"from": "2000-01-01"}, 1),
        ({"to": "2000-01-01"}, 0),
        ({"from": "2000-01-01T00:00:00Z", "to": "2999-01-01"}, 1),
        ({"from": "2999-01-01T00:00:00+02:00"}, 0),
        ({"from": "2000-01-01T00:00", "tz": "Asia/Tokyo"}, 1),
    ],
)
def test_a_span_is_a_day_or_an_instant(client_for, api_key, spent, query, count):
    spent(api_key)
    assert len(client_for(api_key).get(USAGE, query).json()["items"]) == count


def test_the_last_day_is_counted_whole(client_for, api_key, spent):
    spent(api_key)
    (item,) = client_for(api_key).get(USAGE).json()["items"]
    day = item["group"]
    assert len(client_for(api_key).get(USAGE, {"from": day, "to": day}).json()["items"]) == 1


@pytest.mark.parametrize(
    "query",
    [
        {"from": "yesterday"},
        {"to": "2026-13-01"},
        {"tz": "Mars/Base"},
        {"group_by": "mood"},
        {"team": "x"},
        {"all": "maybe"},
    ],
)
def test_a_question_that_cannot_be_answered_names_its_field(client_for, api_key, query):
    answer = client_for(api_key).get(USAGE, query)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["detail"]["fields"]) == set(query)


def test_my_page_shows_my_own_use_and_nobody_elses(client, user, team, api_key, spent):
    colleague = user_make(team=team, role=Role.MEMBER)
    spent(key_make(user=colleague, team=team), input_tokens=9_000_000)
    client.force_login(user)
    assert "Nothing was used in this time" in client.get("/usage/").text
    spent(api_key, input_tokens=12_345)
    page = client.get("/usage/?group_by=model").text
    assert re.search(r"\b0\.00123450* EUR", page)
    assert "12\u202f345" in page
    assert "9\u202f" not in page
    lines = list(csv.reader(io.StringIO(client.get("/usage/usage.csv?group_by=kind").text.lstrip("\ufeff"))))
    assert lines[0][:2] == ["kind", "price"]
    assert [(line[0], Decimal(line[1])) for line in lines[1:]] == [("Answers", Decimal("0.0012345"))]


def test_a_wrong_span_on_my_page_is_said(client, user):
    client.force_login(user)
    assert "is no date" in client.get("/usage/?from=yesterday").text
    assert client.get("/usage/?group_by=person&team=x").status_code == 200


def test_my_page_asks_strangers_to_sign_in(client):
    assert client.get("/usage/").status_code == client.get("/usage/usage.csv").status_code == 302


def test_no_name_is_a_formula_in_the_table(client, user, api_key, spent):
    api_key.row.name = "=HYPERLINK(1)"
    api_key.row.save()
    spent(api_key)
    client.force_login(user)
    text = client.get("/usage/usage.csv?group_by=key").text
    assert "'=HYPERLINK(1)" in text

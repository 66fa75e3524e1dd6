"""limit-requests/: whoever was refused asks for more; whoever may raise the limit does, until it resets."""

import io
from decimal import Decimal

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from app.billing.errors import BudgetExhausted
from app.billing.models import Budget
from app.billing.services import budget_set, price_set, reservation_hold
from app.billing.types import Hold, Payer, Rate
from app.common.models import uuid7
from retrieval.models import Document
from tests.factories import collection_make, key_make, user_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]
URL = "/api/v1/limit-requests/"


@pytest.fixture
def member(team):
    return user_make(team=team, role="member")


def free_price():
    price_set(price_key="free", rates=[Rate(component="input", price=Decimal(0))], approved_by="tests")


def ask(client, limit_id, **body):
    return client.post(URL, {"limit_id": limit_id, **body}, format="json")


def refused(payer):
    """The id of the limit that refuses the payer's call."""
    hold = Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="free", input_tokens=1)
    with pytest.raises(BudgetExhausted) as exc:
        reservation_hold(hold=hold)
    return exc.value.detail["limit_id"]


@pytest.fixture
def limit_id(team, member, settings):
    settings.EMAIL_HOST = "mail.example"
    Budget.objects.update(active=False)
    free_price()
    budget_set(scope="team", unit="requests", limit=0, period="month", team_id=team.id, ceiling=5)
    return refused(Payer(team_id=team.id, account_id=member.account_id))


def test_a_request_reaches_the_owner_who_raises_until_the_window_ends(
    client_for, api_key, team, member, user, limit_id, django_capture_on_commit_callbacks
):
    asking = client_for(key_make(user=member, team=team))
    assert ask(client_for(key_make(user=member, team=team, scopes=("chat",))), limit_id).status_code == 403
    with django_capture_on_commit_callbacks(execute=True):
        assert ask(asking, limit_id, amount="1", note="soon").status_code == 201
    with django_capture_on_commit_callbacks(execute=True):
        made = ask(asking, limit_id, amount="2", note="a deadline")
    assert made.status_code == 201
    assert (made.json()["state"], made.json()["amount"], made.json()["mine_to_decide"]) == (
        "open",
        "2",
        False,
    )
    # Told once; what changed is on the page.
    assert [(m.to, "asks for 1 request" in m.body) for m in mail.outbox] == [([user.email], True)]
    assert [item["id"] for item in asking.get(URL).json()["items"]] == [made.json()["id"]]

    decide = f"{URL}{made.json()['id']}/decide/"
    assert asking.post(decide, {"grant": True}, format="json").status_code == 403
    owner = client_for(api_key)
    (seen,) = owner.get(URL).json()["items"]
    assert (seen["mine_to_decide"], seen["covers"], seen["note"]) == (True, str(team), "a deadline")
    too_much = owner.post(decide, {"grant": True, "amount": "6"}, format="json")
    assert (too_much.status_code, too_much.json()["error"]["code"]) == (403, "not_allowed")
    granted = owner.post(decide, {"grant": True}, format="json").json()
    assert (granted["state"], granted["granted"]) == ("granted", "2")
    assert owner.post(decide, {"grant": False}, format="json").status_code == 409
    payer = Payer(team_id=team.id, account_id=member.account_id)
    hold = Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="free", input_tokens=1)
    assert reservation_hold(hold=hold).state == "held"


def test_strangers_see_and_decide_nothing(client_for, team, member, limit_id):
    asking = client_for(key_make(user=member, team=team))
    made = ask(asking, limit_id).json()
    assert (made["amount"], made["granted"]) == (None, None)
    stranger = user_make()
    other = client_for(key_make(user=stranger, team=stranger.default_team))
    assert ask(other, limit_id).status_code == 404
    assert other.get(URL).json()["items"] == []
    assert other.post(f"{URL}{made['id']}/decide/", {"grant": True}, format="json").status_code == 404
    assert other.post(f"{URL}{uuid7()}/decide/", {"grant": True}, format="json").status_code == 404


@pytest.mark.parametrize(("scope", "role", "allowed"), [
    ("team", "admin", False), ("team", "owner", True), ("allowance", "admin", True), ("allowance", "member", False),
    ("person", "owner", False), ("key", "admin", True), ("installation", "owner", False),
])  # fmt: skip
def test_who_may_decide_is_who_may_raise(client_for, team, member, scope, role, allowed):
    Budget.objects.update(active=False)
    free_price()
    key = key_make(user=None, team=team)
    ids = {
        "team": {"team_id": team.id},
        "person": {"account_id": member.account_id},
        "key": {"key_id": key.row.id},
    }
    budget_set(scope=scope, unit="requests", limit=0, period="day", **ids.get(scope, {}))
    by_key = scope == "key"
    payer = Payer(
        team_id=team.id,
        account_id=None if by_key else member.account_id,
        key_id=key.row.id if by_key else None,
    )
    asking = client_for(key if by_key else key_make(user=member, team=team))
    limit = refused(payer)
    made = ask(asking, limit).json()
    decider = user_make(team=team, role=role)
    session = APIClient()
    session.force_login(decider)
    seen = session.post(f"{URL}{made['id']}/decide/", {"grant": False}, format="json")
    assert (seen.status_code == 200) is allowed
    staff = user_make(team=team, is_staff=True)
    session.force_login(staff)
    assert session.post(f"{URL}{made['id']}/decide/", {"grant": False}, format="json").status_code == (
        409 if allowed else 200
    )


@pytest.mark.parametrize(("unit", "limit", "scope"), [
    ("bytes", 100, "team"), ("pages", 1, "team"), ("bytes", 100, "installation"), ("bytes", 100, "allowance"),
    ("pages", 1, "person"),
])  # fmt: skip
def test_an_upload_beyond_what_may_be_stored_is_refused_by_how_much(
    client_for, api_key, user, team, unit, limit, scope
):
    ids = {"team": {"team_id": team.id}, "person": {"account_id": user.account_id}}
    collection = collection_make(user=user, team=team)
    budget_set(scope=scope, unit=unit, limit=limit, period="lifetime", **ids.get(scope, {}))
    client = client_for(api_key)

    def upload(content):
        file = io.BytesIO(content)
        file.name = "a.txt"
        return client.post(
            f"/api/v1/collections/{collection.pk}/documents/", {"file": file}, format="multipart"
        )

    kept = upload(b"x" * 60)
    assert kept.status_code == 202
    full = upload(b"y" * 60)
    assert full.status_code == 402
    error = full.json()["error"]
    assert (error["code"], error["detail"]["unit"], error["detail"]["scope"]) == (
        "budget_exhausted",
        unit,
        scope,
    )
    assert ("20 bytes more than there is room for" if unit == "bytes" else "1 page more") in error["message"]
    # The same bytes again are no more than there is.
    assert upload(b"x" * 60).status_code == 200
    shown = [x for x in client.get("/api/v1/limits/").json()["items"] if x["unit"] == unit]
    assert (shown[0]["spent"], shown[0]["limit"]) == ("60" if unit == "bytes" else "1", str(limit))
    # A larger version counts by what it adds.
    file = io.BytesIO(b"z" * 101)
    file.name = "a.txt"
    larger = client.put(f"/api/v1/documents/{kept.json()['id']}/file/", {"file": file}, format="multipart")
    assert larger.status_code == (402 if unit == "bytes" else 202)
    # What was removed is free again.
    assert client.delete(f"/api/v1/documents/{kept.json()['id']}/").status_code == 204
    assert upload(b"y" * 60).status_code == 202


def test_a_key_stores_nothing_of_its_own(api_key):
    with pytest.raises(Exception, match="not to a key"):
        budget_set(scope="key", unit="bytes", limit=Decimal(1), period="lifetime", key_id=api_key.row.id)


def test_files_put_in_by_command_are_limited_like_uploads(user, team, tmp_path):
    collection_make(user=user, team=team, name="shelf")
    budget_set(scope="team", unit="bytes", limit=10, period="lifetime", team_id=team.id)
    (tmp_path / "a.txt").write_bytes(b"x" * 11)
    told = io.StringIO()
    with pytest.raises(CommandError, match="1 file could not be read"):
        call_command("ingest", str(tmp_path / "a.txt"), collection="shelf", email=user.email, stderr=told)
    assert "1 bytes more than there is room for" in told.getvalue()
    assert not Document.objects.exists()

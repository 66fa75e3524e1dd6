"""The audit log: each act leaves its row with its actor, no row can change, and nothing in it is content."""

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from app.accounts.models import Membership, Team, User
from app.accounts.services import membership_set
from app.audit.models import AuditEntry, Verb
from app.audit.services import audit
from app.billing.budgets import budget_remove, budget_set
from app.billing.pausing import spending_pause
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.models import Backend
from tests.api.admin.conftest import backend as backend  # noqa: PLC0414 - a fixture
from tests.factories import PASSWORD, IssuedKey, collection_make, user_make

pytestmark = pytest.mark.django_db
ClientFor = Callable[[IssuedKey | str], APIClient]


def entries(verb: Verb) -> list[dict[str, Any]]:
    return list(AuditEntry.objects.filter(verb=verb).order_by("id").values())


@pytest.fixture
def staff(db: None) -> User:
    return user_make(is_staff=True)


@pytest.fixture
def browser(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditentry SET verb = 'export'",
        "DELETE FROM audit_auditentry",
        "SET LOCAL tessera.truncate = 'refuse'; TRUNCATE audit_auditentry",
    ],
)
def test_no_row_is_changed_or_removed(statement: str) -> None:
    audit(Verb.BACKUP)
    with (
        pytest.raises(DatabaseError, match="only ever added to"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.parametrize("right", ["UPDATE", "DELETE", "TRUNCATE"])
def test_the_application_may_add_and_read_alone(right: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('tessera_app', 'audit_auditentry', %s)", [right])
        assert cursor.fetchone() == (False,)
        cursor.execute("SELECT has_table_privilege('tessera_app', 'audit_auditentry', 'SELECT, INSERT')")
        assert cursor.fetchone() == (True,)


def test_signing_in_and_being_refused(client: Client, user: User) -> None:
    client.post("/accounts/login/", {"username": user.email, "password": "not this one"})
    client.post("/accounts/login/", {"username": "nobody@example.org", "password": "not this one"})
    answer = client.post("/accounts/login/", {"username": user.email, "password": PASSWORD})
    rows = entries(Verb.SIGN_IN)
    assert [(row["outcome"], row["object_id"]) for row in rows] == [
        ("refused", str(user.account_id)),
        ("refused", ""),
        ("ok", str(user.account_id)),
    ]
    assert rows[-1]["actor_account"] == user.account_id
    assert rows[-1]["request_id"] == answer["X-Request-Id"]
    assert "not this one" not in str(rows)


def test_a_key_that_makes_and_revokes_keys(
    client_for: ClientFor, api_key: IssuedKey, user: User, team: Team
) -> None:
    http = client_for(api_key)
    made = http.post("/api/v1/keys/", {"name": "second", "team": str(team.id)}, format="json").json()
    http.delete(f"/api/v1/keys/{made['id']}/")
    for verb in (Verb.KEY_MADE, Verb.KEY_REVOKED):
        row = entries(verb)[-1]
        assert row["object_id"] == made["id"]
        assert (row["actor_account"], row["actor_key"]) == (user.account_id, api_key.row.id)
        assert row["team_id"] == team.id
    assert made["key"] not in str(entries(Verb.KEY_MADE))


def test_roles_suspension_and_the_flag(browser: Client, staff: User, team: Team) -> None:
    other = user_make()
    membership_set(team=team, user=other, role="viewer")
    membership_set(team=team, user=other, role="viewer")
    row = Membership.objects.get(team=team, user=other)
    browser.post(f"/admin/accounts/membership/{row.pk}/change/", {"role": "admin"})
    browser.post(f"/admin/accounts/membership/{row.pk}/delete/", {"post": "yes"})
    mine = [r for r in entries(Verb.ROLE_CHANGED) if r["object_id"] == str(other.account_id)]
    assert [(r["before"], r["after"]) for r in mine] == [("", "viewer"), ("viewer", "admin"), ("admin", "")]
    assert [r["actor_account"] for r in mine] == [None, staff.account_id, staff.account_id]
    fields = {"email": other.email, "name": "N", "default_team": other.default_team_id, "is_staff": "on"}
    browser.post(f"/admin/accounts/user/{other.pk}/change/", fields)
    suspended = entries(Verb.SUSPEND)[-1]
    assert (suspended["before"], suspended["after"]) == ("active", "suspended")
    assert entries(Verb.ROLE_CHANGED)[-1]["after"] == "staff"


def test_money_servers_and_rights(
    browser: Client, client_for: ClientFor, api_key: IssuedKey, user: User, team: Team, backend: Backend
) -> None:
    identity = budget_set(scope="team", unit="money", limit=Decimal(100), period="month", team_id=team.id)
    budget_set(scope="team", unit="money", limit=Decimal(250), period="month", team_id=team.id)
    budget_set(scope="team", unit="money", limit=Decimal(250), period="month", team_id=team.id)
    budget_remove(budget_id=identity)
    changes = [r for r in entries(Verb.BUDGET_CHANGED) if r["object_id"] == f"t:{team.id}"]
    assert [(r["before"], r["after"]) for r in changes] == [
        ("", "100 money a month"),
        ("100 money a month", "250 money a month"),
        ("250 money a month", ""),
    ]
    rates = (Rate(component="input", price=Decimal("0.10")), Rate(component="output", price=Decimal("0.40")))
    price_set(price_key="chat/m", rates=rates, approved_by="tests")
    assert entries(Verb.PRICE_APPROVED)[-1]["after"] == "input 0.1, output 0.4"
    spending_pause(set_by="tests", reason="a bill that ran away")
    assert entries(Verb.SUSPEND)[-1]["reason"] == "a bill that ran away"
    fields = {"name": "gpu", "kind": "vllm", "address": "https://203.0.113.7/v1", "key": "new-secret"}
    browser.post(f"/admin/catalog/backend/{backend.pk}/change/", fields)
    changed = entries(Verb.SERVER_CHANGED)[-1]
    assert "203.0.113.7" in changed["after"]
    assert "leaves the premises" in changed["after"]
    assert "secret" not in str(changed)
    collection = collection_make(team=team, user=user)
    url = f"/api/v1/collections/{collection.id}/grants/"
    client_for(api_key).put(url, {"principal": f"team:{team.id}", "verb": "read"}, format="json")
    assert entries(Verb.GRANT_CHANGED)[-1]["after"] == f"team:{team.id} read"


def test_staff_narrow_the_list_and_take_it_along(browser: Client, staff: User) -> None:
    audit(Verb.BREAK_GLASS, object_kind="conversation", object_id="c-1", reason="=HYPERLINK(1)")
    audit(Verb.ERASE, object_kind="document", object_id="d-1")
    page = browser.get("/admin/audit/auditentry/?verb=erase")
    assert page.context["cl"].result_count == 1
    assert "export/?verb=erase" in page.content.decode()
    answer = browser.get("/admin/audit/auditentry/export/?verb=break_glass")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [(row["verb"], row["reason"]) for row in rows] == [("break_glass", "'=HYPERLINK(1)")]
    assert entries(Verb.EXPORT)[-1]["actor_account"] == staff.account_id
    # What was done to them, and what they did.
    found = browser.get(f"/admin/audit/auditentry/?q={staff.account_id}").context["cl"]
    assert {row.verb for row in found.queryset} == {"role_changed", "export"}
    row = AuditEntry.objects.first()
    assert browser.post(f"/admin/audit/auditentry/{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_others_see_none_of_it(client: Client, user: User) -> None:
    client.force_login(user)
    assert client.get("/admin/audit/auditentry/", follow=True).status_code == 403
    assert client.get("/admin/audit/auditentry/export/", follow=True).status_code == 403

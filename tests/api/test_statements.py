"""Statements over HTTP: who sees which, and that page, files and API show the same digits."""

import csv
import html
import re
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from app.accounts.models import ApiKey, Role, Team, User
from app.accounts.services import membership_set
from app.billing.credit import credit_grant
from app.billing.models import LedgerEntry, Statement
from app.billing.services import bootstrap_defaults, price_set, reservation_hold, reservation_settle
from app.billing.statement_sheet import statement_sheet
from app.billing.statements import statements_draft, statements_issue_due
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.common.formatting import money
from app.common.models import uuid7
from tests.factories import key_make, user_make

pytestmark = pytest.mark.django_db
LIST = "/api/v1/statements/"
PAGE = "/dashboard/statements/"
JANUARY, MARCH = datetime(2031, 1, 15, tzinfo=UTC), datetime(2031, 3, 10, tzinfo=UTC)
RATES = (Rate(component="input", price=Decimal("0.333")), Rate(component="output", price=Decimal(2)))


def book(team: Team | None, when: datetime, given: int, model: str = "m", **changes: Any) -> None:
    hold = Hold(
        reservation_id=uuid7(), payer=Payer(team_id=team.id if team else None), kind="chat", price_key="m",
        input_tokens=given, output_tokens=100, effective_at=when,
    )  # fmt: skip
    reservation_hold(hold=hold)
    attempt = Attempt(buckets=Buckets(input=given, output=100), requested_model=model, **changes)
    reservation_settle(reservation_id=hold.reservation_id, attempts=[attempt])


@pytest.fixture
def issued(user: User, team: Team) -> Statement:
    """Use of two models, one of them estimated, and of the installation itself, issued."""
    bootstrap_defaults()
    price_set(price_key="m", rates=RATES, approved_by="tests")
    Team.objects.filter(id=team.id).update(cost_centre="4711")
    book(team, JANUARY, 1_234_567)
    book(team, JANUARY, 7_654_321, model="n", estimated=True)
    book(None, JANUARY, 5000)
    statements_draft(at=MARCH)
    statements_issue_due(at=MARCH)
    return Statement.objects.get(team_id=team.id)


def test_page_files_and_api_show_the_same(
    client: Client, client_for, issued: Statement, user, api_key
) -> None:
    client.force_login(user)
    sheet = statement_sheet(issued)
    data = client_for(api_key).get(f"{LIST}{issued.id}/").json()
    shown = html.unescape(client.get(f"{PAGE}{issued.id}/").content.decode())
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown))
    assert f"No. {issued.number:06d}" in text and "Cost centre 4711" in text
    for line in sheet.section("charge"):
        assert money(line.amount, "EUR") in shown
        assert f"{line.quantity:,}".replace(",", "\u202f") in shown
    assert money(sheet.total, "EUR") in shown and f"{sheet.exact:f} EUR" in shown
    files = {
        "csv": client.get(f"{PAGE}{issued.id}/statement.csv"),
        "json": client.get(f"{PAGE}{issued.id}/statement.json"),
    }
    assert files["json"].json() == data
    table = files["csv"].content.decode().removeprefix("\ufeff")
    assert client_for(api_key).get(f"{LIST}{issued.id}/csv").content.decode() == table
    rows = list(csv.DictReader(StringIO(table)))
    amounts = [Decimal(row["amount"]) for row in rows if row["section"] != "total"]
    assert sum(amounts) == sheet.total == Decimal(data["total"]) == Decimal(rows[-1]["amount"])
    assert [line["exact"] for line in data["lines"]] == [row["exact"] for row in rows[:-1]]
    booked = LedgerEntry.objects.filter(team_id=issued.team_id)
    assert sum(entry.price for entry in booked) == Decimal(data["exact"])
    for name, answer in files.items():
        assert f"statement-{issued.number:06d}-2031-01.{name}" in answer["Content-Disposition"]


def test_the_list_leads_to_each(client: Client, client_for, issued: Statement, user, api_key) -> None:
    client.force_login(user)
    assert f"{PAGE}{issued.id}/" in client.get(PAGE).content.decode()
    items = client_for(api_key).get(LIST).json()
    assert [item["id"] for item in items["items"]] == [str(issued.id)] and items["next"] is None
    assert "lines" not in items["items"][0]


def test_staff_see_every_teams_and_pages_of_the_list(
    client: Client, client_for, issued: Statement, team
) -> None:
    boss = user_make(is_staff=True, team=team)
    client.force_login(boss)
    assert "The installation itself" in client.get(PAGE).content.decode()
    key = key_make(user=boss, team=team, scopes=("usage", "staff"))
    first = client_for(key).get(f"{LIST}?limit=1").json()
    second = client_for(key).get(f"{LIST}?limit=1&cursor={first['next']}").json()
    seen = {item["team"]["id"] for item in first["items"] + second["items"]}
    assert seen == {str(team.id), None} and second["next"] is None
    assert client_for(key_make(user=boss, team=team, scopes=("usage",))).get(LIST).json()["items"] == []


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.MEMBER, Role.ADMIN])
def test_below_owner_there_is_none(client: Client, client_for, issued: Statement, team, role) -> None:
    person = user_make()
    if role:
        membership_set(team=team, user=person, role=role)
    client.force_login(person)
    key = key_make(user=person, team=person.default_team)
    assert str(issued.id) not in client.get(PAGE).content.decode()
    for path in ("", "statement.csv", "statement.json"):
        assert client.get(f"{PAGE}{issued.id}/{path}").status_code == 404
    assert client_for(key).get(LIST).json()["items"] == []
    for path in ("", "csv/"):
        assert client_for(key).get(f"{LIST}{issued.id}/{path}").status_code == 404


def test_strangers_and_keys_without_the_scope_are_refused(
    client: Client, client_for, issued, user, team
) -> None:
    assert client.get(PAGE).status_code == 302
    assert client.get(f"{PAGE}{issued.id}/").status_code == 302
    assert client_for(key_make(user=user, team=team, scopes=("chat",))).get(LIST).status_code == 403


def test_a_key_of_the_team_is_not_its_owner(client_for, issued: Statement, team) -> None:
    assert client_for(key_make(user=None, team=team)).get(LIST).json()["items"] == []
    assert ApiKey.objects.filter(user=None).count() == 1


def test_a_draft_an_adjustment_credit_and_a_missing_price_are_said(
    client: Client, user: User, issued
) -> None:
    team = Team.objects.get(id=issued.team_id)
    credit_grant(team_id=team.id, amount=Decimal(9), source="invoice 7", granted_by="tests")
    statements_draft(at=MARCH)
    statements_issue_due(at=MARCH)
    book(team, JANUARY.replace(month=3), 1_000_000, units={"picture": 3})
    Team.objects.filter(id=team.id).update(cost_centre="")
    book(team, JANUARY, 1_000_000)
    book(team, JANUARY.replace(month=3), 1_000_000)
    statements_draft(at=datetime(2031, 4, 2, tzinfo=UTC))
    client.force_login(user)
    draft = Statement.objects.get(team_id=team.id, state="draft")
    shown = html.unescape(client.get(f"{PAGE}{draft.id}/").content.decode())
    for words in (
        "Draft, as of now", "1 call had no known price", "not known", "Adjustments of earlier months",
        "Without a cost centre", "Cost centre 4711", "Left for the next statement",
    ):  # fmt: skip
        assert words in shown, words
    february = Statement.objects.get(team_id=team.id, month="2031-02-01")
    assert "Given: invoice 7" in client.get(f"{PAGE}{february.id}/").content.decode()
    assert "draft until" in client.get(PAGE).content.decode()
    assert (
        "statement-draft-2031-03.csv" in client.get(f"{PAGE}{draft.id}/statement.csv")["Content-Disposition"]
    )


def test_before_the_first_there_is_a_sentence(client: Client, user: User) -> None:
    client.force_login(user)
    assert "There is no statement yet" in client.get(PAGE).content.decode()

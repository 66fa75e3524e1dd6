"""Every page of spend: whose money is shown to whom, numbers against SQL over the ledger, the CSV against the page."""

import csv
import re
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from app.accounts.models import Membership, Role, Team, User
from app.audit.models import AuditEntry, Verb
from app.billing.late import provisioned_book
from app.billing.models import LedgerEntry
from app.billing.rollups import rollups_fold
from app.billing.seeding import price_since
from app.billing.services import budget_set, reservation_hold, reservation_settle
from app.billing.types import HOUR, Attempt, Buckets, Hold, Payer, Rate
from app.chat.models import Conversation, Turn
from app.common.clock import now
from app.common.models import uuid7
from tests.api.test_dashboard import model_make, rows_of, spent
from tests.factories import collection_make, key_make, team_make, user_make

pytestmark = pytest.mark.django_db
D = Decimal
PAGES = ("", "entries/", "budgets/", "dearest/", "own-servers/", "accuracy/")
YEAR = f"from={date.today() - timedelta(days=364)}"  # noqa: DTZ011 - the span is wider than any zone
LONG_NAME = "Überwachungsausschußvorsitzendenstellvertretung " * 4 + "🦜" + "x" * 40


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


@pytest.fixture
def teams(user: User) -> tuple[Team, Team]:
    return team_make(owner=user, name="Research"), team_make(owner=user_make(), name=LONG_NAME[:200])


@pytest.fixture
def year(user: User, teams: tuple[Team, Team]) -> None:
    """Calls over eleven months by two teams, folded but for the last ones."""
    research, law = teams
    large, small = model_make("large"), model_make("small")
    other = user_make(team=law)
    for number in range(24):
        spent(user, research, large, input_tokens=100_000 + number, days_ago=number * 14)
        spent(other, law, small, input_tokens=50_000 + number, days_ago=number * 9, estimated=number % 3 == 0)
    rollups_fold()
    spent(user, research, small, input_tokens=70_000)


def table_csv(client: Client, query: str, page: str = "") -> list[dict[str, str]]:
    answer = client.get(f"/dashboard/{page}?{query}&format=csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(StringIO(answer.text.removeprefix("\ufeff"))))


def body_of(page: str) -> str:
    """Without the frame, which names the reader."""
    return page[page.index("<main") : page.index("</main>")]


def in_sql(column: str, team: UUID | None = None) -> dict[str, tuple[D, int, int, int]]:
    """Sums over the ledger by plain SQL: price, calls, input, output."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT ({column})::text, sum(price), count(*), sum(input_tokens), sum(output_tokens) "
            "FROM billing_ledgerentry WHERE %s::uuid IS NULL OR team_id = %s GROUP BY 1",
            [team, team],
        )
        return {row[0]: row[1:] for row in cursor.fetchall()}


@pytest.mark.parametrize(
    ("group_by", "column"),
    [
        ("model", "model"),
        ("kind", "call_kind"),
        ("month", "to_char(date_trunc('month', effective_at AT TIME ZONE 'UTC'), 'FMMonth YYYY')"),
        ("year", "to_char(effective_at AT TIME ZONE 'UTC', 'YYYY')"),
        ("week", "to_char(date_trunc('week', effective_at AT TIME ZONE 'UTC'), 'Dy FMDD Mon YYYY')"),
        ("day", "to_char(effective_at AT TIME ZONE 'UTC', 'Dy FMDD Mon YYYY')"),
        ("team", "(SELECT name FROM accounts_team t WHERE t.id = team_id)"),
        ("person", "(SELECT name FROM accounts_user u WHERE u.account_id = billing_ledgerentry.account_id)"),
        ("deployment", "model || ' on server'"),
        ("key", "'In the browser'"),
        ("collection", "'No collection'"),
    ],
)
def test_every_number_is_sql_over_the_ledger(staff: Client, year: None, group_by: str, column: str) -> None:
    rows = table_csv(staff, f"{YEAR}&group_by={group_by}")
    *groups, total = rows
    first = next(iter(rows[0]))
    found = {
        row[first]: (D(row["Price"]), int(row["Calls"]), int(row["Input tokens"]), int(row["Output tokens"]))
        for row in groups
    }
    assert found == in_sql(column)
    assert total[first] == "All"
    assert D(total["Price"]) == sum(e.price or D(0) for e in LedgerEntry.objects.all())
    page = staff.get(f"/dashboard/?{YEAR}&group_by={group_by}").text
    assert list(rows_of(page))[:-1] == [row[first] for row in groups]
    assert "Nothing was spent" not in page


def test_an_admin_sees_the_own_team_alone(
    client: Client, user: User, teams: tuple[Team, Team], year: None
) -> None:
    research, law = teams
    Membership.objects.filter(user=user).exclude(team=research).delete()
    Membership.objects.filter(user=user, team=research).update(role=Role.ADMIN)
    client.force_login(user)
    *groups, total = table_csv(client, f"{YEAR}&group_by=team")
    assert [row["Team"] for row in groups] == ["Research"]
    assert D(total["Price"]) == sum(row[0] for row in in_sql("1", research.id).values())
    for page in ("", "entries/", "dearest/", "budgets/"):
        for query in (YEAR, f"{YEAR}&team={law.id}", f"{YEAR}&group_by=person"):
            text = client.get(f"/dashboard/{page}?{query}").text
            assert law.name[:40] not in text.replace("Team", ""), (page, query)
    assert (
        table_csv(client, f"{YEAR}&team={law.id}")
        == [
            {
                **dict.fromkeys(total, "0"),
                "Day": "All",
                "Share": "0 %",
                "Cost": "unknown",
                "Margin": "unknown",
            }
        ]
        or not table_csv(client, f"{YEAR}&team={law.id}")[:-1]
    )
    assert table_csv(client, f"{YEAR}&team={law.id}", "entries/") == []
    for page in ("own-servers/", "accuracy/"):
        assert client.get(f"/dashboard/{page}").status_code == 403


def test_strangers_and_members_see_no_page(client: Client, team: Team) -> None:
    for page in PAGES:
        assert client.get(f"/dashboard/{page}").status_code == 302
    member = user_make(team=team)
    Membership.objects.filter(user=member, role=Role.OWNER).delete()
    client.force_login(member)
    for page in PAGES:
        assert client.get(f"/dashboard/{page}").status_code == 403
    assert "/dashboard/?" not in client.get("/dashboard/limits/").text


def test_every_page_stands_empty(staff: Client) -> None:
    for page in PAGES:
        answer = staff.get(f"/dashboard/{page}")
        assert answer.status_code == 200, page
        assert "<table" not in answer.text or page == "budgets/"


def test_prices_lead_to_their_entries(staff: Client, year: None) -> None:
    page = staff.get(f"/dashboard/?{YEAR}&group_by=model").text
    link, shown = re.findall(r'href="(/dashboard/entries/[^"]*model=large[^"]*)">([^<]*)</a>', page)[0]
    entries = staff.get(link.replace("&amp;", "&")).text
    assert "24 entries, " in entries
    assert shown.strip("€")[:4] in entries
    exact = sum(e.price or D(0) for e in LedgerEntry.objects.filter(model="large"))
    assert f'title="{exact:f} EUR"' in entries


def test_entries_come_page_by_page_once_each(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    for number in range(130):
        spent(user, team, model, input_tokens=number + 1)
    seen: list[str] = []
    query = "/dashboard/entries/?"
    while query:
        text = staff.get(query).text
        seen += re.findall(r"<tr><th scope=\"row\"[^>]*title=\"([^\"]+)\"", text)
        found = re.search(r'href="([^"]+)" rel="next"', text)
        query = "/dashboard/entries/" + found[1].replace("&amp;", "&") if found else ""
    assert len(seen) == 130
    assert seen == sorted(seen, reverse=True)
    assert "130 entries" in staff.get("/dashboard/entries/?after=torn").text
    assert len(table_csv(staff, "", "entries/")) == 130


def test_marked_entries_alone(staff: Client, year: None) -> None:
    text = staff.get(f"/dashboard/entries/?{YEAR}&flag=estimated").text
    assert "8 entries" in text
    assert "≈ €" in text
    assert staff.get("/dashboard/entries/?flag=odd").text.count("marks no entries") == 1


def test_figures_that_do_not_agree_are_found_and_said(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    spent(user, team, model, input_tokens=1000)
    assert "None in this time." in staff.get("/dashboard/accuracy/").text
    spent(user, team, model, input_tokens=1000, flags=("cost_disagrees", "input_long"))
    page = staff.get("/dashboard/accuracy/").text
    (query,) = re.findall(r'href="/dashboard/entries/\?([^"]*flag=disputed[^"]*)"', page)
    (row,) = table_csv(staff, query.replace("&amp;", "&"), "entries/")
    assert row["Marks"] == "the provider says another cost, the server counted far more input than was sent"


def test_naming_people_is_written_down(staff: Client, year: None) -> None:
    staff.get("/dashboard/?group_by=model")
    assert not AuditEntry.objects.filter(verb=Verb.PERSON_LEVEL_VIEW).exists()
    staff.get("/dashboard/?group_by=person")
    staff.get("/dashboard/entries/")
    assert AuditEntry.objects.filter(verb=Verb.PERSON_LEVEL_VIEW).count() == 2
    staff.get("/dashboard/?group_by=person&format=csv")
    assert AuditEntry.objects.filter(verb=Verb.EXPORT).count() == 1


def test_pseudonyms_stay_and_name_nobody(staff: Client, user: User, year: None, settings: Settings) -> None:
    settings.PERSON_LEVEL = "pseudonym"
    page = staff.get(f"/dashboard/?{YEAR}&group_by=person").text
    assert user.name not in page
    assert len(set(re.findall(r"Person [0-9A-F]{6}", page))) == 2
    assert "nothing is narrowed" in staff.get(f"/dashboard/?person={user.account_id}").text
    assert user.name not in staff.get(f"/dashboard/entries/?{YEAR}").text
    assert not AuditEntry.objects.filter(verb=Verb.PERSON_LEVEL_VIEW).exists()


def test_groups_are_of_five_or_more(staff: Client, user: User, settings: Settings) -> None:
    settings.PERSON_LEVEL = "groups"
    model = model_make("large")
    big, small = team_make(owner=user, name="Big"), team_make(owner=user, name="Small")
    for _ in range(5):
        spent(user_make(), big, model, input_tokens=1000)
    for _ in range(2):
        spent(user_make(), small, model, input_tokens=1000)
    rows = rows_of(staff.get("/dashboard/?group_by=person").text)
    assert set(rows) == {"Big (5 people) and smaller teams", "All"}
    for _ in range(3):
        spent(user_make(), small, model, input_tokens=1000)
    assert set(rows_of(staff.get("/dashboard/?group_by=person").text)) == {
        "Big (5 people)",
        "Small (5 people)",
        "All",
    }
    assert "Person " not in body_of(staff.get("/dashboard/entries/").text)
    own = user_make()
    assert own.default_team is not None
    spent(own, own.default_team, model, input_tokens=1000)
    assert set(rows_of(staff.get("/dashboard/?group_by=team").text)) == {
        "Big",
        "Small",
        "Personal teams",
        "All",
    }
    assert "is a person" in staff.get(f"/dashboard/?team={own.default_team.id}").text


def test_dearest_conversations_and_why(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    library = collection_make(team=team, user=user)
    talk = Conversation.objects.create(team=team, owner=user, title="Secret plans")
    for number, thread in enumerate([talk.id] * 3 + [uuid7()]):
        hold = Hold(
            reservation_id=uuid7(),
            payer=Payer(team_id=team.id, account_id=user.account_id),
            kind="chat",
            price_key="large",
            deployment_id=model.id,
            input_tokens=10_000,
            output_tokens=500,
            thread_id=thread,
            collections=(library.id,),
        )
        reservation_hold(hold=hold)
        buckets = Buckets(input=9000 - number, output=100, reasoning=300)
        reservation_settle(reservation_id=hold.reservation_id, attempts=[Attempt(buckets=buckets)])
        parts = {
            "system": 500,
            "history": 7000,
            "retrieved": {"expected": 1000, "max": 1500},
            "draft": 500,
            "attachments": 0,
        }
        if thread == talk.id:
            Turn.objects.create(
                conversation=talk,
                team=team,
                asked_by=user,
                question="A secret",
                model="large",
                estimate={"input_tokens": parts},
                started_at=now(),
                heartbeat_at=now(),
            )
    for folded in (False, True):
        if folded:
            rollups_fold()
        dear, other = table_csv(staff, "", "dearest/")
        assert (dear["Conversation"], dear["Turns"], dear["Reasoning"]) == (str(talk.id), "3", "900")
        assert dear["What makes it dear"] == "long history, 78 % of the input; reasoning, 75 % of the output"
        assert D(dear["Price"]) == sum(e.price or D(0) for e in LedgerEntry.objects.filter(thread_id=talk.id))
        assert D(other["Price"]) < D(dear["Price"])
    page = staff.get("/dashboard/dearest/").text
    assert "ecret" not in page
    link = re.findall(r'href="(/dashboard/entries/[^"]*thread=[^"]*)"', page)[0].replace("&amp;", "&")
    assert "3 entries" in staff.get(link).text
    (row, _) = table_csv(staff, "group_by=collection")
    assert row["Collection"] == library.name


def test_own_servers_are_recovered_and_idle(staff: Client, user: User, team: Team) -> None:
    model = model_make("finch")
    since = now() - timedelta(hours=50)
    price_since(
        price_key=f"provisioned/{model.id}",
        side="cost",
        since=since,
        rates=[Rate(component=HOUR, price=D("0.5"), per_units=1)],
    )
    spent(user, team, model, input_tokens=1_000_000, total_ms=3_600_000)
    assert provisioned_book() == 50
    rollups_fold()
    (row,) = table_csv(staff, "", "own-servers/")
    assert (row["Hours"], D(row["Provisioned"]), D(row["Billed"])) == ("50", D(25), D("1.0002"))
    assert row["Recovered"] == "4 %"
    assert D(row["Cost per million"]) == pytest.approx(D(25) * 1_000_000 / 1_000_100)
    assert staff.get("/dashboard/?group_by=kind").text.count("provisioned") >= 1


def test_drift_and_estimates(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    for local in (900, 1000, 1000):
        spent(user, team, model, input_tokens=1010, local_input_tokens=local)
    spent(user, team, model, input_tokens=1000, estimated=True, estimate_reason="no_usage", source="local")
    rollups_fold()
    text = staff.get("/dashboard/accuracy/").text
    assert "+1.0 %" in text
    (row,) = table_csv(staff, "", "accuracy/")
    assert (row["Model"], row["Estimated calls"], row["Share"]) == ("large", "1", "25 %")


def test_budgets_burn_down(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    budget_set(scope="team", unit="money", limit=2, period="month", team_id=team.id, name="Ours")
    spent(user, team, model, input_tokens=1_500_000)
    rows = {row["Budget"]: row for row in table_csv(staff, "", "budgets/")}
    ours = rows[f"Team {team.name}: Ours"]
    assert (D(ours["Limit"]), D(ours["Spent"]), ours["Used"]) == (D(2), D("1.5002"), "75 %")
    page = staff.get(f"/dashboard/budgets/?team={team.id}").text
    assert 'class="burn-line"' in page
    assert "€0.50 left of €2.00" in page


def test_keys_and_hours(staff: Client, user: User, team: Team, settings: Settings) -> None:
    settings.INSTALLATION_ZONE = "Asia/Kolkata"
    model = model_make("large")
    key = key_make(user=user, team=team)
    identity = uuid7()
    reservation_hold(
        hold=Hold(
            reservation_id=identity,
            payer=Payer(team_id=team.id, account_id=user.account_id, key_id=key.row.id),
            kind="chat",
            price_key="large",
            deployment_id=model.id,
            input_tokens=100,
            output_tokens=10,
        )
    )
    reservation_settle(reservation_id=identity, attempts=[Attempt(buckets=Buckets(input=100, output=10))])
    assert set(rows_of(staff.get("/dashboard/?group_by=key").text)) == {
        f"test key ({key.row.prefix}…)",
        "All",
    }
    here = now().astimezone(ZoneInfo("Asia/Kolkata"))
    page = staff.get(f"/dashboard/?from={here:%Y-%m-%d}&to={here:%Y-%m-%d}&group_by=hour").text
    assert "Price by hour and model" in page
    hours = {name for name in rows_of(page) if name != "All"}
    assert hours <= {f"{at:%a %-d %b %Y, %H}:00" for at in (here, here - timedelta(hours=1))}
    assert hours

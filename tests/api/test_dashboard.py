"""The spend page over real ledger rows: every amount on screen is a sum of entries."""

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from app.accounts.models import Membership, Role, Team, User
from app.billing import pricing
from app.billing.models import Budget, LedgerEntry, PriceComponent, PriceVersion
from app.billing.services import budget_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.billing.types.spending import Dimension
from app.catalog.models import Backend, Deployment
from app.common.clock import now
from app.common.models import uuid7
from app.dashboard import selectors
from app.dashboard.chart import Amount, Series
from app.dashboard.filters import SpendFilter
from app.dashboard.reach import Reach
from tests.factories import team_make, user_make

pytestmark = pytest.mark.django_db

ALL = Reach(None, ())
RATES = (Rate(component="input", price=Decimal(1)), Rate(component="output", price=Decimal(2)))


@pytest.fixture(autouse=True)
def _one_budget() -> None:
    Budget.objects.update(active=False)
    budget_set(scope="installation", unit="money", limit=100, period="month", name="All of us")


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


def _price_long_ago(key: str) -> None:
    """A price as it would stand here had it been set 400 days ago; setting one now begins now."""
    rates = pricing.complete(RATES)
    version = PriceVersion.objects.create(
        price_key=key,
        currency="EUR",
        effective_from=now() - timedelta(days=400),
        dearest=[tier.as_json() for tier in pricing.dearest(rates)],
        source="tests",
        approved_by="tests",
    )
    for rate in rates:
        PriceComponent.objects.create(version=version, component=rate.component, price=rate.price)


def model_make(name: str) -> Deployment:
    backend, _ = Backend.objects.get_or_create(
        name="server", defaults={"kind": "openai", "base_url": "http://127.0.0.1:9/"}
    )
    _price_long_ago(name)
    return Deployment.objects.create(backend=backend, public_name=name, upstream_model=name, price_key=name)


def spent(
    user: User, team: Team, deployment: Deployment, *, input_tokens: int, days_ago: int = 0, **attempt: Any
) -> UUID:
    """One call that was held and settled."""
    identity = uuid7()
    reservation_hold(
        hold=Hold(
            reservation_id=identity,
            payer=Payer(team_id=team.id, account_id=user.account_id),
            kind="chat",
            price_key=deployment.price_key,
            deployment_id=deployment.id,
            input_tokens=input_tokens,
            output_tokens=100,
            effective_at=now() - timedelta(days=days_ago),
        )
    )
    done = Attempt(
        buckets=Buckets(input=input_tokens, output=100), served_model=deployment.upstream_model, **attempt
    )
    reservation_settle(reservation_id=identity, attempts=[done], state="settled")
    return identity


def rows_of(page: str) -> dict[str, list[str]]:
    """The page's table: name → cells."""
    body = page[page.index("<tbody>") : page.index("</table>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    cells = [
        [
            html.unescape(re.sub(r"<[^>]+>", "", c)).strip()
            for c in re.findall(r"<t[hd].*?</t[hd]>", r, re.DOTALL)
        ]
        for r in rows
    ]
    return {row[0]: row[1:] for row in cells}


def test_members_may_not_look(client: Client, team: Team) -> None:
    user = user_make(team=team)
    Membership.objects.filter(user=user, role=Role.OWNER).delete()
    client.force_login(user)
    answer = client.get("/dashboard/")
    assert answer.status_code == 403
    assert "You may not open this page" in answer.text
    assert user.email in answer.text


def test_a_new_installation_has_spent_nothing(staff: Client) -> None:
    page = staff.get("/dashboard/").text
    assert "Nothing was spent in this time" in page
    assert "€100.00" in page


@pytest.mark.parametrize(
    ("group_by", "expected"),
    [
        ("model", {"large": "€2.0002", "small": "€0.5002"}),
        ("team", {"Research": "€2.0002", "Law": "€0.5002"}),
        ("kind", {"chat": "€2.5004"}),
    ],
)
def test_groups_and_their_sum(staff: Client, user: User, group_by: str, expected: dict[str, str]) -> None:
    research, law = team_make(owner=user, name="Research"), team_make(owner=user, name="Law")
    spent(user, research, model_make("large"), input_tokens=2_000_000)
    spent(user, law, model_make("small"), input_tokens=500_000)
    rows = rows_of(staff.get(f"/dashboard/?group_by={group_by}").text)
    assert {name: cells[0] for name, cells in rows.items() if name != "All"} == expected
    assert rows["All"][0] == "€2.5004"
    total = sum((entry.price for entry in LedgerEntry.objects.all() if entry.price is not None), Decimal(0))
    assert total == Decimal("2.5004")


def test_people_are_named_and_those_who_left_are_not(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    gone = user_make()
    spent(user, team, model, input_tokens=1_000_000)
    spent(gone, team, model, input_tokens=1_000_000)
    gone.delete()
    assert set(rows_of(staff.get("/dashboard/?group_by=person").text)) == {
        user.name,
        "A person who left",
        "All",
    }


def test_a_team_and_a_span_narrow_everything(staff: Client, user: User) -> None:
    mine, other = team_make(owner=user, name="Mine"), team_make(owner=user, name="Other")
    model = model_make("large")
    spent(user, mine, model, input_tokens=1_000_000)
    spent(user, mine, model, input_tokens=3_000_000, days_ago=40)
    spent(user, other, model, input_tokens=7_000_000)
    page = staff.get(f"/dashboard/?team={mine.id}&group_by=model").text
    assert rows_of(page)["All"][0] == "€1.0002"
    assert "Team Mine" in page
    first = (now() - timedelta(days=60)).date()
    page = staff.get(f"/dashboard/?team={mine.id}&group_by=model&from={first}").text
    assert rows_of(page)["All"][0] == "€4.0004"


def test_estimates_are_marked(staff: Client, user: User, team: Team) -> None:
    model = model_make("large")
    spent(
        user, team, model, input_tokens=1_000_000, estimated=True, estimate_reason="no_usage", source="local"
    )
    spent(user, team, model, input_tokens=3_000_000)
    page = staff.get("/dashboard/?group_by=model").text
    assert rows_of(page)["large"][2] == "≈ 25 %"
    assert 'class="hatch"' in page


def series_of(chosen: SpendFilter) -> list[Series]:
    rows = selectors.table(chosen, reach=ALL, zone="UTC")
    return selectors.series(chosen, reach=ALL, zone="UTC", rows=rows)


@pytest.mark.parametrize("group_by", ["team", "person", "collection", "key", "week"])
def test_beyond_six_the_chart_still_is_the_table(group_by: Dimension, user: User) -> None:
    """Those told apart and the others together are all; each bar of the others is what is left of it."""
    model = model_make("large")
    for number in range(9):
        owner = user_make()
        team = team_make(owner=owner, name=f"Team {number}")
        spent(
            owner,
            team,
            model,
            input_tokens=(number + 1) * 1000,
            days_ago=number % 4,
            estimated=number % 2 == 0,
        )
    today = datetime.now(UTC).date()
    chosen = SpendFilter(today - timedelta(days=6), today, group_by)
    table = selectors.total_of(selectors.table(chosen, reach=ALL, zone="UTC"))
    total = sum((line.total for line in series_of(chosen)), Amount())
    assert (total.price, total.estimated) == (table.price, table.estimated_price)
    assert len(series_of(chosen)) == (6 if group_by in {"team", "person"} else 1)


def test_the_chart_adds_up_to_the_table(user: User, team: Team) -> None:
    for number in range(8):
        spent(
            user,
            team,
            model_make(f"model-{number}"),
            input_tokens=(number + 1) * 100_000,
            days_ago=number % 3,
        )
    today = datetime.now(UTC).date()
    chosen = SpendFilter(today - timedelta(days=6), today)
    lines = series_of(chosen)
    table = selectors.total_of(selectors.table(chosen, reach=ALL, zone="UTC"))
    assert [line.name for line in lines] == ["model-7", "model-6", "model-5", "model-4", "model-3", "other"]
    assert len({line.colour for line in lines}) == 6
    assert sum((line.total.price for line in lines), Decimal(0)) == table.price


def test_a_model_keeps_its_colour_from_view_to_view(user: User, team: Team) -> None:
    first, second = model_make("first"), model_make("second")
    spent(user, team, first, input_tokens=1000, days_ago=5)
    spent(user, team, second, input_tokens=9000)
    today = datetime.now(UTC).date()
    both = series_of(SpendFilter(today - timedelta(days=6), today))
    one = series_of(SpendFilter(today, today))
    assert {line.name: line.colour for line in one}.items() <= {
        line.name: line.colour for line in both
    }.items()


def test_a_filter_that_cannot_be_read_is_said(staff: Client) -> None:
    answer = staff.get("/dashboard/?from=never&group_by=<b>")
    assert answer.status_code == 200
    assert "“never” is no date" in answer.text
    assert "<b>" not in answer.text

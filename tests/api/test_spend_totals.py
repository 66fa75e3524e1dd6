"""Every total on screen is SQL over the ledger, and every number leads to the entries that it is the sum of."""

import html
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client

from app.billing.late import provisioned_book
from app.billing.rollups import rollups_fold
from app.billing.seeding import price_since
from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import HOUR, Attempt, Buckets, Hold, Payer, Rate
from app.common.clock import now
from app.common.formatting import count
from app.common.models import uuid7
from app.dashboard import spend_table
from app.dashboard.naming import NOBODY
from tests.api.test_dashboard import model_make, rows_of
from tests.api.test_spend_pages import YEAR, table_csv
from tests.factories import collection_make, key_make, team_make, user_make

pytestmark = pytest.mark.django_db
D = Decimal
SHELVES = 2


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


@pytest.fixture
def year() -> None:
    """Ten months of calls with everything that is told apart, and an hour of a server of our own; half are folded."""
    models = [model_make("large"), model_make("small")]
    price_since(
        price_key=f"provisioned/{models[1].id}",
        side="cost",
        since=now() - timedelta(hours=3),
        rates=[Rate(component=HOUR, price=D("0.5"), per_units=1)],
    )
    for owner in (user_make(), user_make()):
        team = team_make(owner=owner)
        key = key_make(user=owner, team=team)
        shelves = [collection_make(team=team, user=owner) for _ in range(SHELVES)]
        for number in range(10):
            model, at = models[number % 2], now() - number * timedelta(days=365) / 12
            hold = Hold(
                reservation_id=uuid7(),
                payer=Payer(
                    team_id=team.id, account_id=owner.account_id, key_id=key.row.id if number % 3 else None
                ),
                kind="chat",
                price_key=model.price_key,
                deployment_id=model.id,
                input_tokens=9_000,
                output_tokens=900,
                effective_at=at,
                thread_id=uuid7(),
                collections=(shelves[number % SHELVES].id,),
            )
            reservation_hold(hold=hold)
            used = Buckets(input=7000 + number, cache_read=1000, output=300, reasoning=100 + number)
            estimated = (
                {"estimated": True, "estimate_reason": "no_usage", "source": "local"} if number == 4 else {}
            )
            attempt = Attempt(buckets=used, deployment_id=model.id, price_key=model.price_key, **estimated)
            reservation_settle(reservation_id=hold.reservation_id, attempts=[attempt])
        rollups_fold()
    provisioned_book()


def in_sql(where: str = "true") -> dict[str, str]:
    """The totals of some entries, by plain SQL over entries and lines, as the CSV writes them."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT sum(price), count(DISTINCT reservation_id), count(*), sum(input_tokens), sum(output_tokens),
              sum((SELECT sum(quantity) FROM billing_ledgerline l WHERE l.entry_id = e.id AND side = 'price'
                AND component = 'cache_read')),
              sum((SELECT sum(quantity) FROM billing_ledgerline l WHERE l.entry_id = e.id AND side = 'price'
                AND component = 'reasoning'))
            FROM billing_ledgerentry e WHERE {where}"""
        )
        price, *counts = cursor.fetchone()
    names = ("Turns", "Calls", "Input tokens", "Output tokens", "Cached", "Reasoning")
    return {"Price": f"{price:f}", **{name: str(n) for name, n in zip(names, counts, strict=True)}}


GROUPS = "hour day week month year team person key model deployment collection kind".split()  # noqa: SIM905


@pytest.mark.parametrize("group_by", GROUPS)
def test_every_view_adds_up_to_the_ledger(staff: Client, year: None, group_by: str) -> None:
    span = f"from={now().date()}" if group_by == "hour" else YEAR
    where = f"effective_at >= '{now().date()}'" if group_by == "hour" else "true"
    total = table_csv(staff, f"{span}&group_by={group_by}")[-1]
    wanted = in_sql(where)
    assert {name: total[name] for name in wanted} == wanted
    page = staff.get(f"/dashboard/?{span}&group_by={group_by}").text
    foot = html.unescape(page[page.index("<tfoot>") : page.index("</tfoot>")])
    assert f'title="{wanted["Price"]}"' in foot
    assert all(count(int(wanted[name])) in foot for name in wanted if name != "Price")
    # The chart's own total, of the same moment.
    assert f'title="{wanted["Price"]} EUR"' in page[page.index("<figure") : page.index("</figure>")]


@pytest.mark.parametrize("group_by", ["day", "month", "team", "person", "key", "model", "deployment", "kind"])
def test_every_number_leads_to_its_entries(staff: Client, year: None, group_by: str) -> None:
    page = html.unescape(staff.get(f"/dashboard/?{YEAR}&group_by={group_by}").text)
    shown = rows_of(page)
    body = page[page.index("<tbody>") : page.index("</tfoot>")]
    followed = 0
    for row in re.findall(r"<tr>.*?</tr>", body):
        links = set(re.findall(r'href="(/dashboard/entries/[^"]*)"', row))
        every = {link for link in links if "flag=" not in link}
        name = re.sub(r"<[^>]+>", "", row.partition("</th>")[0])
        figures = shown[name]
        if not every:
            assert name in NOBODY.values()
            continue
        # Price, cost where it is known, margin, turns, calls and four kinds of tokens: all to one place.
        (link,) = every
        assert row.count(f'href="{link}"') >= 7
        behind = html.unescape(staff.get(link).text)
        turns, calls, inputs, cached, outputs, reasoning = figures[5:]
        assert f">{calls} entr" in behind
        sums = behind[behind.index('class="sums') : behind.index("</dl>", behind.index('class="sums'))]
        assert re.findall(r"<dd>([^<]*)</dd>", sums)[-5:] == [turns, inputs, cached, outputs, reasoning]
        for marked in links - every:
            assert "flag=estimated" in marked
            assert "estimated (" in staff.get(marked).text
        followed += 1
    assert followed > 1


def test_a_page_of_the_other_views_is_the_ledger_too(staff: Client, year: None) -> None:
    def money(rows: list[dict[str, str]], column: str) -> D:
        return sum((D(row[column]) for row in rows), D(0))

    def sql(query: str) -> D:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT coalesce({query}, 0) FROM billing_ledgerentry")
            return D(cursor.fetchone()[0])

    sure = table_csv(staff, YEAR, "accuracy/")
    assert money(sure, "Price") == sql("sum(price)")
    assert money(sure, "Of it estimated") == sql("sum(price) FILTER (WHERE estimated)") > 0
    assert money(sure, "Calls") == sql("count(*)")
    own = table_csv(staff, YEAR, "own-servers/")
    assert money(own, "Provisioned") == sql("sum(cost) FILTER (WHERE call_kind = 'provisioned')") > 0
    assert money(own, "Billed") == sql(
        "sum(price) FILTER (WHERE call_kind <> 'provisioned' AND model = 'small')"
    )
    dearest = table_csv(staff, YEAR, "dearest/")
    assert money(dearest, "Price") == sql("sum(price) FILTER (WHERE thread_id IS NOT NULL)")
    assert money(table_csv(staff, YEAR, "entries/"), "Price") == sql("sum(price)")
    month = sql(f"sum(price) FILTER (WHERE effective_at >= '{now().date().replace(day=1)}')")
    today = sql(f"sum(price) FILTER (WHERE effective_at >= '{now().date()}')")
    page = staff.get("/dashboard/").text
    figures = page[page.index('class="figures') : page.index("</dl>")]
    assert re.findall(r'title="([0-9.]+) EUR"', figures)[:2] == [f"{today:f}", f"{month:f}"]


def test_a_long_table_comes_in_parts(staff: Client, year: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of(staff.get(f"/dashboard/?{YEAR}&group_by=month").text)
    monkeypatch.setattr(spend_table, "A_PAGE", 3)
    # Twelve entries a twelfth of a year apart fall into fewer months on some days.
    assert len(whole) > 7
    seen: list[str] = []
    address = f"?{YEAR}&group_by=month"
    while address:
        text = staff.get(f"/dashboard/{address}").text
        rows = rows_of(text)
        assert rows.pop("All") == whole["All"]
        seen += rows
        found = re.search(r'href="([^"#]+)[^"]*" rel="next"', text)
        address = html.unescape(found[1]) if found else ""
    assert seen == [name for name in whole if name != "All"]
    assert "1 to 3 of" in staff.get(f"/dashboard/?{YEAR}&group_by=month&page=torn").text
    assert 'rel="next"' not in staff.get(f"/dashboard/?{YEAR}&group_by=month&page=99").text
    assert len(table_csv(staff, f"{YEAR}&group_by=month")) == len(whole)

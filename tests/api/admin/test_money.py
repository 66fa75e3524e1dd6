"""Prices and limits under /admin/: asked of billing, exact, and never rewritten."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from app.accounts.models import Team, User
from app.billing.models import Budget, LedgerEntry, PriceVersion
from app.billing.selectors import limits_remaining, price_current
from app.billing.services import budget_set
from app.billing.types import Payer
from app.common.clock import now
from tests.api.admin.conftest import errors, page, post
from tests.factories import key_make

pytestmark = pytest.mark.django_db


def test_a_new_price_closes_the_old_one(browser: Client, staff: User) -> None:
    address = page(PriceVersion, "add")
    assert 'value="chat/x"' in browser.get(f"{address}?price_key=chat/x").content.decode()
    answer = post(
        browser, address, price_key="chat/x", side="price", input="0.15", output="0.60", request="0.001"
    )
    assert answer.status_code == 302
    first = price_current("chat/x")
    rates = {rate.component: (rate.price, rate.per_units) for rate in first.rates}
    assert rates["input"] == rates["cache_read"] == (Decimal("0.15"), 1_000_000)
    assert (rates["reasoning"], rates["request"]) == ((Decimal("0.60"), 1_000_000), (Decimal("0.001"), 1))
    assert PriceVersion.objects.get().approved_by == f"user:{staff.pk}"
    post(browser, address, price_key="chat/x", side="price", input="0.2", output="1", cache_read="0.02")
    second = price_current("chat/x")
    assert {r.component: r.price for r in second.rates}["cache_read"] == Decimal("0.02")
    assert PriceVersion.objects.get(pk=first.version_id).effective_to == second.effective_from


def test_a_price_may_begin_later_and_be_one_teams_own(browser: Client, team: Team) -> None:
    later = now() + timedelta(days=3)
    post(
        browser, page(PriceVersion, "add"), price_key="k", side="price", input="1", team=team.pk,
        effective_from_0=later.strftime("%Y-%m-%d"), effective_from_1="00:00",
    )  # fmt: skip
    row = PriceVersion.objects.get(price_key="k")
    assert (row.team_id, row.effective_from.date(), row.effective_from.hour) == (team.pk, later.date(), 0)
    assert price_current("k", team_id=team.pk) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "at least one rate"),
        ({"input": "-1"}, "greater than or equal to 0"),
        ({"input": "0.0000000001"}, "9 decimal places"),
        ({"input": "1", "effective_from_0": "2020-01-01", "effective_from_1": "00:00"}, "from now on"),
        ({"input": "1", "price_key": ""}, "required"),
    ],
)
def test_a_price_that_cannot_be_is_refused_and_what_was_typed_stays(
    browser: Client, fields: dict[str, Any], words: str
) -> None:
    answer = post(browser, page(PriceVersion, "add"), **{"price_key": "kept", "side": "price"} | fields)
    assert words in errors(answer)
    assert "price_key" in fields or 'value="kept"' in answer.content.decode()
    assert not PriceVersion.objects.filter(price_key="kept").exists()


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"scope": "installation"}, "i"),
        ({"scope": "team"}, "t:*"),
        ({"scope": "team", "team": "team"}, "t:{team}"),
        ({"scope": "allowance", "team": "team", "person": "user"}, "a:{team}:{account}"),
        ({"scope": "person", "person": "user"}, "p:{account}"),
        ({"scope": "key", "key": "key"}, "k:{key}"),
    ],
)
def test_a_limit_of_each_scope_is_set_shown_by_name_changed_and_stopped(
    browser: Client, user: User, team: Team, staff: User, fields: dict[str, Any], subject: str
) -> None:
    key = key_make(user=user, team=team).row
    rows = {"team": team, "user": user, "key": key}
    chosen = {
        name: rows[value].pk if value in rows and name != "scope" else value for name, value in fields.items()
    }
    common = {"unit": "tokens", "limit": "5000", "period": "day", "zone": "Europe/Berlin", "name": "A limit"}
    assert post(browser, page(Budget, "add"), **common, **chosen, hard="on").status_code == 302
    row = Budget.objects.get(unit="tokens")
    assert row.subject == subject.format(team=team.pk, account=user.account_id, key=key.pk)
    assert (row.limit, row.zone, row.set_by, row.hard) == (5000, "Europe/Berlin", f"user:{staff.pk}", True)
    Budget.objects.update(alert_ratios=["0.8"])
    post(browser, page(Budget, "change", row.pk), name="Other", limit="700", period="month")
    row.refresh_from_db()
    assert (row.name, row.limit, row.hard, row.period, row.active) == ("Other", 700, False, "day", True)
    assert row.alert_ratios == ["0.8"]
    names = {
        "t": team.name,
        "a": f"{user.name} in {team.name}",
        "p": user.name,
        "k": key.prefix,
        "i": "installation",
    }
    shown = "every team" if subject == "t:*" else names[subject[0]]
    assert shown in browser.get(page(Budget)).content.decode()
    post(browser, page(Budget), action="stop", _selected_action=row.pk)
    row.refresh_from_db()
    assert not row.active
    assert browser.post(page(Budget, "change", row.pk), {"name": "x", "limit": "1"}).status_code == 403


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"limit": "1.5", "unit": "tokens"}, "whole number"),
        ({"limit": "-1"}, "greater than or equal to 0"),
        ({"zone": "Nowhere/City"}, "not a time zone"),
        ({"scope": "installation", "team": "team"}, "takes no team_id"),
        ({"scope": "allowance", "person": "user"}, "needs the team"),
        ({"scope": "galaxy"}, "valid choice"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(
    browser: Client, user: User, team: Team, fields: dict[str, Any], words: str
) -> None:
    common = {"scope": "team", "unit": "money", "limit": "5", "period": "day", "zone": "UTC", "name": "Never"}
    rows = {"team": team.pk, "user": user.pk}
    chosen = {k: rows.get(v, v) if k in {"team", "person"} else v for k, v in fields.items()}
    assert words in errors(post(browser, page(Budget, "add"), **common | chosen))
    assert not Budget.objects.filter(name="Never").exists()


def test_a_changed_limit_is_in_force_at_once(
    browser: Client, booked: LedgerEntry, user: User, team: Team
) -> None:
    budget = budget_set(scope="team", unit="money", limit=5, period="month", team_id=team.pk, name="T")
    post(browser, page(Budget, "change", budget), name="T", limit="0.000000000000001", hard="on")
    payer = Payer(team_id=team.id, account_id=user.account_id)
    assert Decimal("1e-15") in {limit.limit for limit in limits_remaining(payer)}
    assert "0.000000000000001 EUR" in browser.get(page(Budget)).content.decode()

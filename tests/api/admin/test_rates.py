"""Mark-ups, exchange rates, prepaid credit and own servers under /admin/: asked of billing, and never rewritten."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from app.accounts.models import Team, User
from app.billing.credit import credit_of
from app.billing.late import provisioned_book
from app.billing.models import CreditMovement, ExchangeRate, PriceVersion, TeamRate
from app.billing.own_servers import hourly_costs
from app.billing.selectors import price_current
from app.common.clock import now
from tests.api.admin.conftest import errors, page, post, told
from tests.factories import chat_deployment_make

pytestmark = pytest.mark.django_db
D = Decimal


def test_a_price_of_many_parts_and_what_it_changed(browser: Client) -> None:
    address = page(PriceVersion, "add")
    first = {
        "price_key": "chat/x",
        "side": "cost",
        "currency": "USD",
        "mode": "batch",
        "input": "2",
        "output": "8",
    }
    more = "input 4 from 200001\n\nweb_search 10 per 1000"
    answer = post(browser, address, **first, cache_write_long="3", more=more)
    assert "the first: cache_read 2," in told(answer)
    answer = post(browser, address, **first | {"input": "2.5"}, cache_write_long="3", more=more)
    assert "cache_read 2 → 2.5, cache_write 2 → 2.5, input 2 → 2.5, input_image 2 → 2.5 USD" in told(answer)
    price = price_current("chat/x", side="cost", mode="batch")
    rates = {(r.component, r.min_prompt_tokens, r.per_units): r.price for r in price.rates}
    assert (rates["input", 200_001, 1_000_000], rates["web_search", 0, 1000]) == (4, 10)
    assert price.currency == "USD"
    shown = browser.get(page(PriceVersion, "change", price.version_id)).content.decode()
    assert "input 2 → 2.5" in shown


@pytest.mark.parametrize("line", ["input", "input dear", "input 1 from", "input 1 from x", "input 1 above 5"])
def test_a_line_that_is_no_rate_is_named(browser: Client, line: str) -> None:
    answer = post(browser, page(PriceVersion, "add"), price_key="k", side="price", input="1", more=line)
    assert "is no rate; write such as" in errors(answer)
    assert not PriceVersion.objects.exists()


def test_an_hourly_cost_is_not_set_as_a_price(browser: Client) -> None:
    answer = post(browser, page(PriceVersion, "add"), price_key="provisioned/x", side="cost", input="1")
    assert "set under Own servers" in errors(answer)


def test_a_factor_is_set_and_ended(browser: Client, team: Team, staff: User) -> None:
    address = page(TeamRate, "add")
    assert post(browser, address, team=team.pk, factor="1.5").status_code == 302
    assert post(browser, address, team=team.pk, factor="2").status_code == 302
    old, new = TeamRate.objects.order_by("effective_from")
    assert (old.effective_to, new.factor, new.approved_by) == (new.effective_from, 2, f"user:{staff.pk}")
    assert "below 100" in errors(post(browser, address, team=team.pk, factor="100"))
    for row, words in ((new, "ended"), (new, "nothing in force")):
        assert words in told(post(browser, page(TeamRate), action="end", _selected_action=row.pk))
    listed = browser.get(page(TeamRate)).content.decode()
    assert team.name in listed
    assert browser.get(page(TeamRate, "change", old.pk)).status_code == 200


def test_an_exchange_rate_is_set(browser: Client) -> None:
    answer = post(browser, page(ExchangeRate, "add"), currency="usd", rate="0.92", source="ECB")
    assert answer.status_code == 302
    row = ExchangeRate.objects.get()
    assert (row.currency, row.to_currency, row.rate, row.source) == ("USD", "EUR", D("0.92"), "ECB")
    assert "own currency" in errors(post(browser, page(ExchangeRate, "add"), currency="EUR", rate="1"))


def test_credit_is_given_and_corrected(browser: Client, team: Team) -> None:
    address, later = page(CreditMovement, "add"), now() + timedelta(days=3)
    ends = {"expires_at_0": later.strftime("%Y-%m-%d"), "expires_at_1": "00:00"}
    assert post(browser, address, team=team.pk, amount="50", source="invoice 9", **ends).status_code == 302
    grant = CreditMovement.objects.get()
    correction = {"team": team.pk, "amount": "-20", "corrects": grant.pk}
    assert "a reason" in errors(post(browser, address, **correction))
    assert "leave the end empty" in errors(post(browser, address, **correction, reason="typo", **ends))
    assert post(browser, address, **correction, reason="typo").status_code == 302
    assert credit_of(team.pk).remaining == 30
    listed = browser.get(page(CreditMovement)).content.decode()
    assert "-20.00000000 EUR" in listed
    assert "50.00000000 EUR" in browser.get(page(CreditMovement, "change", grant.pk)).content.decode()


@pytest.mark.parametrize("model", [TeamRate, ExchangeRate, CreditMovement])
def test_what_is_written_has_no_button_to_change_it(browser: Client, team: Team, model: type[Model]) -> None:
    post(browser, page(TeamRate, "add"), team=team.pk, factor="2")
    post(browser, page(ExchangeRate, "add"), currency="USD", rate="2")
    post(browser, page(CreditMovement, "add"), team=team.pk, amount="2", source="s")
    row: Any = model._default_manager.get()
    assert (
        browser.post(page(model, "change", row.pk), {"factor": "9", "rate": "9", "amount": "9"}).status_code
        == 403
    )
    assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403


def test_an_own_server_is_set_shown_and_proposed_for(browser: Client) -> None:
    """2.70 an hour, 1500 tokens/s half of the time: 2.7 × 1e6 / (1500 × 0.5 × 3600) = 1 for a million."""
    row, address = chat_deployment_make(), reverse("admin:billing_own_servers")
    assert "No server has an hourly cost yet" in browser.get(address).content.decode()
    assert address in browser.get(page(PriceVersion)).content.decode()
    asked = {"deployment": row.pk, "per_hour": "2.7", "currency": "eur"}
    assert "no exchange rate" in errors(post(browser, address, **asked | {"currency": "USD"}))
    answer = post(browser, address, **asked)
    assert "next full hour" in told(answer)
    assert hourly_costs() == {row.pk: (D("2.7"), "EUR")}
    start = PriceVersion.objects.get(price_key=f"provisioned/{row.pk}").effective_from
    assert provisioned_book(at=start + timedelta(hours=1)) == 1
    shown = browser.get(address).content.decode()
    assert f'<th scope="row">{row}</th><td>2.70000000 EUR</td>' in shown

    price = {"per_hour": "2.7", "tokens_per_second": "1500", "utilisation": "0.5", "price_key": row.price_key}
    shown = browser.get(address, price).content.decode()
    assert "Proposed: 1.000000000 per million" in shown
    assert "side=price&amp;input=1&amp;output=1" in shown
    assert "required" in errors(browser.get(address, price | {"per_hour": ""}))
    assert "utilisation above 0" in errors(browser.get(address, price | {"utilisation": "2"}))


def test_own_servers_are_for_staff(client: Client, user: User) -> None:
    client.force_login(user)
    assert client.get(reverse("admin:billing_own_servers")).status_code in {302, 403}

"""Webhooks under /admin/: added with a secret that is shown once, stopped, begun, sent again."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from app.accounts.models import Team
from app.billing.models import Delivery, LedgerEntry, Webhook
from app.billing.outbox import webhook_add, webhook_close
from app.common.clock import now
from tests.api.admin.conftest import errors, page, post, told

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/in"


def act(browser: Client, model: Any, action: str, *ids: object) -> Any:
    return browser.post(page(model), {"action": action, "_selected_action": [str(pk) for pk in ids]})


@pytest.mark.parametrize("own", [False, True])
def test_a_new_webhook_shows_its_secret_once(
    browser: Client, team: Team, booked: LedgerEntry, own: bool
) -> None:
    answer = post(
        browser, page(Webhook, "add"), name="books", url=URL, from_start="on", team=team.pk if own else None
    )
    row = Webhook.objects.get()
    assert answer.status_code == 302 and row.plain_secret in told(answer)
    assert (row.open, row.team_id) == (True, team.pk if own else None)
    assert Delivery.objects.get().entry_id == booked.pk
    assert row.plain_secret in browser.get(page(Webhook)).content.decode(), "this once"
    for address in (page(Webhook), page(Webhook, "change", row.pk), page(Delivery)):
        shown = browser.get(address).content.decode()
        assert "books" in shown and row.plain_secret not in shown


def test_an_address_that_is_refused_stays_typed(browser: Client, settings: Settings) -> None:
    answer = post(browser, page(Webhook, "add"), name="books", url="http://10.0.0.8/")
    assert "plain http" in errors(answer)
    assert "10.0.0.8" in answer.content.decode()
    assert "required" in errors(post(browser, page(Webhook, "add"), name="", url=URL))
    assert not Webhook.objects.exists()


def test_it_is_stopped_and_begun_again(browser: Client) -> None:
    row, _ = webhook_add(name="books", url=URL)
    for action, state in (("stop", False), ("begin", True)):
        act(browser, Webhook, action, row.pk)
        row.refresh_from_db()
        assert row.open is state


@pytest.mark.parametrize("by", [Webhook, Delivery])
def test_what_was_given_up_is_sent_again(browser: Client, booked: LedgerEntry, by: Any) -> None:
    row, _ = webhook_add(name="books", url=URL)
    dead = Delivery.objects.create(
        created_at=now(), webhook=row, entry_id=booked.pk, state="dead", attempts=11, next_at=now()
    )
    assert str(booked.pk) in browser.get(page(Delivery), {"state": "dead"}).content.decode()
    answer = act(browser, by, "again", row.pk if by is Webhook else dead.pk)
    assert "sent again: 1" in told(answer)
    dead.refresh_from_db()
    assert (dead.state, dead.attempts) == ("pending", 0)


@pytest.mark.django_db(transaction=True)
def test_an_entry_that_takes_long_is_said_instead_of_waited_for(browser: Client) -> None:
    row, _ = webhook_add(name="books", url=URL)
    webhook_close(webhook=row)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN; LOCK TABLE billing_ledgerentry IN ROW EXCLUSIVE MODE")
            answer = act(browser, Webhook, "begin", row.pk)
    finally:
        other.close()
    assert "open the webhook again in a moment" in told(answer)
    row.refresh_from_db()
    assert not row.open

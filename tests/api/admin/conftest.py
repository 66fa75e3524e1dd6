"""The pages under /admin/ as a browser of staff sees them: addresses, forms, what they told."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from app.accounts.models import Team, User
from app.billing.models import LedgerEntry
from app.billing.services import bootstrap_defaults, price_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.catalog.models import Backend
from app.common.models import uuid7
from tests.factories import user_make


def page(model: type[Model], what: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{what}", args=args)


@pytest.fixture
def staff(db: None) -> User:
    return user_make(is_staff=True, email="boss@example.org")


@pytest.fixture
def browser(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


@pytest.fixture
def booked(user: User, team: Team) -> LedgerEntry:
    """A call of `user` that `team` paid: 1000 tokens in, 10 out, 0.000104 EUR."""
    # A test that commits takes the migrations' default limits away with it.
    bootstrap_defaults()
    rates = (Rate(component="input", price=Decimal("0.10")), Rate(component="output", price=Decimal("0.40")))
    price_set(price_key="chat/m", rates=rates, approved_by="tests")
    payer = Payer(team_id=team.id, account_id=user.account_id)
    hold = Hold(
        reservation_id=uuid7(),
        payer=payer,
        kind="chat",
        deployment_id=uuid7(),
        price_key="chat/m",
        input_tokens=1000,
        output_tokens=300,
    )
    reservation_hold(hold=hold)
    attempt = Attempt(buckets=Buckets(input=1000, output=10), requested_model="m", estimated=True)
    reservation_settle(reservation_id=hold.reservation_id, attempts=[attempt], hold=hold)
    return LedgerEntry.objects.get()


@pytest.fixture
def backend(db: None) -> Backend:
    row = Backend(name="gpu", kind="vllm", base_url="http://10.0.0.5:8000/v1")
    row.set_api_key("s3cret-of-the-server")
    row.save()
    return row


def post(browser: Client, to: str, /, **fields: Any) -> Any:
    return browser.post(to, {name: value for name, value in fields.items() if value is not None})


def told(answer: Any) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def errors(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return " ".join(
        re.findall(r'<ul class="errorlist[^"]*"[^>]*>(.*?)</ul>', answer.content.decode(), re.DOTALL)
    )

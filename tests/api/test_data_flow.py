"""The page of what leaves the premises: each model elsewhere, and nothing that stays among them."""

import re

import pytest
from django.test import Client

from app.billing.outbox import webhook_add
from app.catalog.models import Backend, Deployment
from tests.factories import user_make

pytestmark = pytest.mark.django_db
ADDRESS = "/dashboard/data-flow/"


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


def _model(name: str, *, leaves: bool, **fields: object) -> None:
    backend = Backend(
        name=f"{name} host",
        kind="openai",
        base_url=f"https://{name}.example/v1",
        leaves_premises=leaves,
        region="eu",
    )
    backend.save()
    Deployment.objects.create(
        backend=backend, public_name=name, upstream_model=name, price_key=name, **fields
    )


def test_each_model_stands_where_its_server_does(browser: Client) -> None:
    _model("far", leaves=True, clearance="internal")
    _model("off", leaves=True, clearance="public", enabled=False)
    _model("near", leaves=False, clearance="private")
    webhook_add(name="books", url="https://hooks.example/in", from_start=True)
    text = browser.get(ADDRESS).content.decode()
    leaving, staying, other = re.split(r"<h2 ", text)[1:4]
    assert "far.example, eu" in leaving and "internal" in leaving and "off · off" in leaving
    assert "near" not in leaving and "near.example" in staying and "far" not in staying
    assert "hooks.example" in other and "no mail server is set" in other


def test_without_any_it_says_so_and_only_staff_see_it(browser: Client, client: Client) -> None:
    assert "No prompt and no passage leaves the premises" in browser.get(ADDRESS).content.decode()
    client.logout()
    client.force_login(user_make())
    assert client.get(ADDRESS).status_code == 403

"""Setting up in the browser: from nothing to a model that people may use, and every refusal says what to do."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from app.billing.selectors import price_current
from app.catalog.models import Backend, Deployment
from tests.factories import user_make

pytestmark = pytest.mark.django_db
PAGE = "/dashboard/setup/"


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


@pytest.fixture
def server() -> tuple[str, str]:
    """Address and key of the real chat server of this run."""
    from tests.factories import chat_deployment_make

    row = chat_deployment_make()
    known = row.backend.base_url, row.backend.api_key
    Deployment.objects.all().delete()
    Backend.objects.all().delete()
    return known


def test_only_staff_may_set_up(client: Client) -> None:
    client.force_login(user_make())
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}look/", {"url": "http://127.0.0.1:9/v1"}).status_code == 403


def test_a_server_is_looked_at_connected_and_priced(staff: Client, server: tuple[str, str]) -> None:
    url, key = server
    looked = staff.post(f"{PAGE}look/", {"url": url, "key": key})
    assert key
    assert key not in looked.content.decode()
    found: Any = looked.context["looked"]
    (name,) = [model.name for model in found.models][:1]
    staff.post(f"{PAGE}connect/", {"url": found.url, "sealed": found.sealed, "models": [name]})
    backend = Backend.objects.get()
    assert (backend.base_url, backend.api_key) == (url.rstrip("/"), key)
    row = backend.deployments.get()
    staff.post(reverse("dashboard:setup-price", args=[row.id]), {"given": "0.25", "made": "1.5"})
    price = price_current(row.price_key)
    assert price is not None
    assert {(rate.component, str(rate.price.normalize())) for rate in price.rates} >= {
        ("input", "0.25"),
        ("output", "1.5"),
    }
    assert staff.get(PAGE).context["steps"].priced is True
    tried = staff.post(reverse("dashboard:servers-try", args=[row.id]), {"setup": "yes"}, follow=True)
    assert tried.redirect_chain[-1][0] == PAGE


@pytest.mark.parametrize(
    ("path", "sent", "words"),
    [
        ("look/", {"url": "nonsense"}, "looks like http://host:8000/v1"),
        ("look/", {"url": "http://127.0.0.1:9/v1"}, "127.0.0.1:9"),
        ("look/", {}, "Give the server"),
        ("connect/", {"url": "http://127.0.0.1:9/v1"}, "Choose at least one model"),
    ],
)
def test_what_cannot_be_done_says_why_and_keeps_what_was_typed(
    staff: Client, path: str, sent: dict[str, str], words: str
) -> None:
    answer = staff.post(f"{PAGE}{path}", sent)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert words in page
    assert sent.get("url", "") in page
    assert not Backend.objects.exists()


def test_a_price_that_is_none_is_refused(staff: Client) -> None:
    backend = Backend.objects.create(name="x", kind="openai", base_url="http://127.0.0.1:9/v1")
    row = Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="chat/m")
    answer = staff.post(reverse("dashboard:setup-price", args=[row.id]), {"given": "-1", "made": "x"})
    assert answer.status_code == 422
    assert price_current("chat/m") is None

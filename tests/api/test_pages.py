"""The pages as a browser without scripts meets them: who may open what, and with which words."""

import json
import re
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from app.accounts.models import User
from tests.factories import PASSWORD, user_make

pytestmark = pytest.mark.django_db

SOME_ID = "01a22b9b-3e7d-7187-856a-fb4feaf2b57b"
PAGES = ["/", f"/c/{SOME_ID}/", "/documents/", f"/documents/{SOME_ID}/", "/dashboard/"]


@pytest.fixture
def signed_in(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


@pytest.mark.parametrize("page", PAGES)
def test_strangers_are_sent_to_sign_in_and_back(client: Client, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 302
    assert answer["Location"] == f"/accounts/login/?next={page}"


def test_sign_in_leads_to_the_page_that_was_asked_for(client: Client, user: User) -> None:
    shown = client.get("/accounts/login/?next=/documents/")
    assert 'name="next" value="/documents/"' in shown.text
    answer = client.post(
        "/accounts/login/", {"username": user.email.upper(), "password": PASSWORD, "next": "/documents/"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/documents/")
    assert client.get("/documents/").status_code == 200


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_sign_in_leads_nowhere_else(client: Client, user: User, target: str) -> None:
    answer = client.post("/accounts/login/", {"username": user.email, "password": PASSWORD, "next": target})
    assert answer["Location"] == "/"


@pytest.mark.parametrize(
    ("email", "password"),
    [("known", "wrong password"), ("stranger@example.org", PASSWORD)],
    ids=["password", "person"],
)
def test_a_wrong_sign_in_says_so_and_nothing_more(
    client: Client, user: User, email: str, password: str
) -> None:
    email = user.email if email == "known" else email
    answer = client.post("/accounts/login/", {"username": email, "password": password})
    assert answer.status_code == 200
    assert "This e-mail and password do not belong together" in answer.text
    assert f'value="{email}"' in answer.text
    assert password not in answer.text


def test_a_suspended_person_cannot_sign_in(client: Client, user: User) -> None:
    user.is_active = False
    user.save()
    answer = client.post("/accounts/login/", {"username": user.email, "password": PASSWORD}, follow=True)
    assert "This account is suspended" in answer.text
    assert client.get("/").status_code == 302


def test_signing_out_needs_a_form_and_ends_the_session(signed_in: Client) -> None:
    assert signed_in.get(reverse("accounts:logout")).status_code == 405
    answer = signed_in.post(reverse("accounts:logout"))
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/")
    assert signed_in.get("/").status_code == 302


def bootstrap(text: str) -> dict[str, str | None]:
    found = re.search(r'<script id="page" type="application/json">(.*?)</script>', text)
    assert found is not None
    data: dict[str, str | None] = json.loads(found[1])
    return data


def test_the_chat_page_says_which_conversation(signed_in: Client) -> None:
    identity = str(uuid4())
    assert bootstrap(signed_in.get("/").text)["conversation"] is None
    assert bootstrap(signed_in.get(f"/c/{identity}/").text)["conversation"] == identity
    assert bootstrap(signed_in.get(f"/documents/{identity}/").text) == {"document": identity}


@pytest.mark.parametrize("page", [*PAGES[:-1], "/accounts/login/", "/nowhere/"])
def test_no_page_allows_inline_script_or_style(signed_in: Client, page: str) -> None:
    policy = signed_in.get(page)["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "img-src 'self' data:" in policy


@pytest.mark.parametrize("page", PAGES[:-1])
def test_pages_are_not_kept_by_caches(signed_in: Client, page: str) -> None:
    assert "no-store" in signed_in.get(page)["Cache-Control"]


def test_everyone_has_the_way_to_their_own_spend_and_only_staff_to_the_servers(client: Client) -> None:
    # Everybody owns at least their personal team.
    for person, links in (
        (user_make(), ("/dashboard/",)),
        (user_make(is_staff=True), ("/dashboard/", "/dashboard/servers/")),
    ):
        client.force_login(person)
        page = client.get("/").text
        found = [link for link in ("/dashboard/", "/dashboard/servers/") if f'href="{link}"' in page]
        assert found == list(links)


def test_a_name_cannot_become_markup(client: Client) -> None:
    person = user_make()
    person.name = "<script>alert(1)</script>"
    person.save()
    client.force_login(person)
    assert "<script>alert(1)" not in client.get("/").text


def test_an_unknown_page_says_what_to_do(signed_in: Client) -> None:
    answer = signed_in.get("/nowhere/")
    assert answer.status_code == 404
    assert "There is nothing here for you" in answer.text


def test_a_form_without_its_secret_is_refused_in_words(user: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/accounts/login/", {"username": user.email, "password": PASSWORD})
    assert answer.status_code == 403
    assert "This form is out of date" in answer.text

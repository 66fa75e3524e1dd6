"""Signing in, being kept from guessing, signing up, and getting back in without the password."""

import re

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client
from pytest_django import Settings

from app.accounts.links import password_link
from app.accounts.models import Team, User
from app.accounts.services import address_confirm
from tests.factories import PASSWORD, user_make

pytestmark = pytest.mark.django_db
SIGN_IN = "/accounts/login/"
NEW = "a whole new passphrase"


def attempt(client: Client, email: str, password: str = PASSWORD, **meta: str):
    return client.post(SIGN_IN, {"username": email, "password": password}, **meta)


def link_in(text: str) -> str:
    found = re.search(r"https?://[^/\s]+(/accounts/\S+)", text)
    assert found is not None, text
    return found[1]


@pytest.fixture
def _mail(settings: Settings) -> None:
    settings.EMAIL_HOST = "localhost"


@pytest.fixture
def _open(settings: Settings) -> None:
    settings.ACCOUNT_SIGNUP_ENABLED = True


def sign_up(client: Client, email: str = "New@Example.org"):
    return client.post("/accounts/signup/", {"email": email, "name": "New Person", "password1": NEW})


def test_an_account_is_closed_to_guessing_wherever_it_is_tried_from(client: Client, user: User) -> None:
    for number in range(5):
        assert (
            "do not belong together"
            in attempt(client, user.email, "guess", REMOTE_ADDR=f"10.0.0.{number}").text
        )
    refused = attempt(client, user.email, REMOTE_ADDR="10.0.0.9")
    assert "Too many attempts" in refused.text
    assert attempt(client, user_make().email, REMOTE_ADDR="10.0.0.9").status_code == 302


@pytest.mark.parametrize(("proxies", "status"), [(1, 302), (0, 429)])
def test_people_behind_a_proxy_are_told_apart_where_it_is_trusted(
    client: Client, user: User, settings: Settings, proxies: int, status: int
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    settings.ACCOUNT_RATE_LIMITS = {"login": "3/m/ip"}
    for number in range(3):
        attempt(client, f"nobody{number}@example.org", HTTP_X_FORWARDED_FOR="6.6.6.6, 10.0.0.1")
    assert attempt(client, user.email, HTTP_X_FORWARDED_FOR="6.6.6.6, 10.0.0.2").status_code == status


def test_a_request_past_the_proxies_counts_by_its_socket(
    client: Client, user: User, settings: Settings
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    assert attempt(client, user.email, HTTP_X_FORWARDED_FOR="10.0.0.1").status_code == 302


@pytest.mark.usefixtures("_mail")
def test_nobody_signs_up_unless_it_is_open(client: Client) -> None:
    assert "made by invitation" in client.get("/accounts/signup/").text
    assert "made by invitation" in sign_up(client).text
    assert "Make an account" not in client.get(SIGN_IN).text
    assert not User.objects.exists()


@pytest.mark.usefixtures("_mail", "_open")
def test_whoever_signs_up_confirms_the_address_first(client: Client) -> None:
    assert "/accounts/signup/" in client.get(SIGN_IN).text
    assert sign_up(client)["Location"] == "/accounts/confirm-email/"
    person = User.objects.get()
    assert (person.email, person.name) == ("new@example.org", "New Person")
    assert person.default_team == Team.objects.get(is_personal=True)
    assert attempt(client, person.email, NEW)["Location"] == "/accounts/confirm-email/"
    link = link_in(mail.outbox[0].body)
    assert "new@example.org" in client.get(link).text
    client.post(link)
    assert attempt(client, person.email, NEW)["Location"] == "/"


@pytest.mark.usefixtures("_mail", "_open")
def test_signing_up_does_not_tell_who_has_an_account(client: Client, user: User) -> None:
    known, unknown = sign_up(client, user.email), sign_up(Client(), "stranger@example.org")
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert User.objects.filter(email=user.email).count() == 1


@pytest.mark.usefixtures("_open")
def test_without_mail_staff_confirm_an_address(client: Client) -> None:
    sign_up(client)
    assert "sends no mail" in client.get("/accounts/confirm-email/").text
    person = User.objects.get()
    assert attempt(client, person.email, NEW)["Location"] == "/accounts/confirm-email/"
    staff = Client()
    staff.force_login(user_make(is_staff=True))
    staff.post("/admin/accounts/user/", {"action": "confirm_address", "_selected_action": [person.pk]})
    assert attempt(client, person.email, NEW)["Location"] == "/"
    assert mail.outbox == []


@pytest.mark.usefixtures("_mail")
def test_a_forgotten_password_is_replaced_by_mail(client: Client, user: User) -> None:
    other = Client()
    attempt(other, user.email)
    for address in (user.email, "nobody@example.org"):
        answer = client.post("/accounts/password/reset/", {"email": address}, follow=True)
        assert "If there is an account with this address" in answer.text
    (message,) = mail.outbox
    link = link_in(message.body)
    form = client.get(link, follow=True)
    client.post(form.redirect_chain[-1][0], {"password1": NEW, "password2": NEW})
    assert attempt(client, user.email, NEW)["Location"] == "/"
    assert "does not work any more" in Client().get(link, follow=True).text
    assert other.get("/").status_code == 302


def test_without_mail_staff_make_the_link_for_a_new_password(client: Client, user: User) -> None:
    assert "sends no mail" in client.get("/accounts/password/reset/").text
    staff = Client()
    staff.force_login(user_make(is_staff=True))
    shown = staff.post(
        "/admin/accounts/user/",
        {"action": "link_for_password", "_selected_action": [user.pk]},
        follow=True,
    )
    form = client.get(link_in(shown.text.replace("&quot;", " ").replace("</li>", " ")), follow=True)
    client.post(form.redirect_chain[-1][0], {"password1": NEW, "password2": NEW})
    assert attempt(client, user.email, NEW)["Location"] == "/"


def test_a_link_for_a_new_password_ends_with_the_old_one(client: Client, user: User) -> None:
    link = link_in(password_link(user))
    user.set_password("something else entirely")
    user.save()
    assert "does not work any more" in client.get(link, follow=True).text


def test_a_suspended_person_is_told_so_only_with_the_right_password(client: Client, user: User) -> None:
    user.is_active = False
    user.save()
    assert "do not belong together" in attempt(client, user.email, "guess").text
    answer = client.post(SIGN_IN, {"username": user.email, "password": PASSWORD}, follow=True)
    assert "suspended" in answer.text
    assert "_auth_user_id" not in client.session


def test_another_address_holds_once_it_is_confirmed(client: Client, user: User) -> None:
    client.force_login(user)
    client.post("/accounts/email/", {"email": "other@example.org", "action_add": ""})
    user.refresh_from_db()
    assert user.email != "other@example.org"
    assert "waits" in client.get("/accounts/email/").text
    assert address_confirm(user=user) == "other@example.org"
    user.refresh_from_db()
    assert user.email == "other@example.org"
    assert [(a.email, a.verified, a.primary) for a in EmailAddress.objects.filter(user=user)] == [
        ("other@example.org", True, True)
    ]


def test_an_address_that_staff_change_signs_in_at_once(client: Client, user: User) -> None:
    staff = Client()
    staff.force_login(user_make(is_staff=True))
    page = f"/admin/accounts/user/{user.pk}/change/"
    values = {
        "email": "Moved@Example.org",
        "name": user.name,
        "is_active": "on",
        "default_team": user.default_team_id,
    }
    assert staff.post(page, values).status_code == 302
    assert attempt(client, "moved@example.org")["Location"] == "/"

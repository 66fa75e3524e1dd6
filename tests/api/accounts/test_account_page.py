"""The account page: name, second step, recovery codes, devices."""

import hashlib
import hmac
import re
import struct
import time
from base64 import b32decode

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.test import Client

from app.accounts.devices import device_name
from app.accounts.models import User
from tests.factories import PASSWORD, user_make

pytestmark = pytest.mark.django_db
HOME = "/accounts/"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0"


def totp(secret: str, *, step: int = 0) -> str:
    """RFC 6238, by hand, so that the test does not ask what it tests."""
    count = struct.pack(">Q", int(time.time()) // 30 + step)
    digest = hmac.digest(b32decode(secret), count, hashlib.sha1)
    at = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[at : at + 4])[0] & 0x7FFFFFFF) % 1_000_000:06d}"


def sign_in(user: User, **meta: str) -> Client:
    client = Client(**meta)
    client.post("/accounts/login/", {"username": user.email, "password": PASSWORD})
    return client


def second_factor(client: Client) -> str:
    """Turn on the authenticator app; returns its secret."""
    again = client.get("/accounts/2fa/totp/activate/")["Location"]
    page = client.post(again, {"password": PASSWORD}, follow=True)
    secret = re.search(r'id="authenticator_secret" value="([A-Z2-7]+)"', page.text)[1]
    client.post("/accounts/2fa/totp/activate/", {"code": totp(secret)})
    return secret


@pytest.mark.parametrize(
    "page",
    [
        "",
        "email/",
        "password/change/",
        "2fa/",
        "2fa/totp/activate/",
        "2fa/webauthn/add/",
        "2fa/recovery-codes/",
    ],
)
def test_strangers_are_sent_to_sign_in(client: Client, page: str) -> None:
    answer = client.get(HOME + page, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/accounts/login/")


def test_a_new_name_is_seen_at_once(client: Client, user: User) -> None:
    client.force_login(user)
    answer = client.post(HOME, {"name": "Ada L."}, follow=True)
    assert "Your name is saved" in answer.text
    assert "Ada L." in client.get("/").text
    assert "This field is required" in client.post(HOME, {"name": " "}).text


def test_the_second_step_is_asked_for_and_recovery_codes_work_once(user: User) -> None:
    client = sign_in(user)
    secret = second_factor(client)
    codes = re.findall(r"<li>(\d{8})</li>", client.get("/accounts/2fa/recovery-codes/").text)
    assert len(codes) == 10
    assert "10 left" in client.get(HOME).text
    other = sign_in(user)
    assert other.get("/").status_code == 302
    step = "/accounts/2fa/authenticate/"
    assert "does not fit" in other.post(step, {"code": "000000"}).text
    assert other.post(step, {"code": totp(secret, step=1)})["Location"] == "/"
    assert other.get("/").status_code == 200
    third, fourth = sign_in(user), sign_in(user)
    assert third.post(step, {"code": codes[0]})["Location"] == "/"
    assert "does not fit" in fourth.post(step, {"code": codes[0]}).text
    assert "9 left" in client.get(HOME).text


def test_seeds_of_second_steps_are_not_readable_in_the_database(user: User) -> None:
    secret = second_factor(sign_in(user))
    for row in Authenticator.objects.all():
        assert secret not in str(row.data)
        assert "seed" not in row.data or len(row.data["seed"]) > 60


def test_a_second_step_is_changed_only_by_who_just_showed_who_they_are(user: User) -> None:
    client = sign_in(user)
    pages = ("totp/activate", "recovery-codes/generate", "webauthn/add")
    asked = [client.get(f"/accounts/2fa/{page}/")["Location"] for page in pages]
    assert all(place.startswith("/accounts/reauthenticate/") for place in asked)
    assert "not your password" in client.post(asked[-1], {"password": "guess"}).text
    assert client.get("/accounts/2fa/webauthn/add/").status_code == 302
    client.post(asked[-1], {"password": PASSWORD})
    assert client.get("/accounts/2fa/webauthn/add/").status_code == 200


def test_a_device_that_is_signed_out_opens_nothing_more(user: User) -> None:
    here, there = sign_in(user), sign_in(user, HTTP_USER_AGENT=FIREFOX)
    shown = here.get(HOME).text
    assert "Firefox on Windows" in shown
    row = UserSession.objects.get(session_key=there.session.session_key)
    stranger = sign_in(user_make())
    assert "no such device" in stranger.post(f"/accounts/devices/{row.pk}/end/", follow=True).text
    assert there.get("/").status_code == 200
    here.post(f"/accounts/devices/{row.pk}/end/")
    assert there.get("/").status_code == 302
    assert there.get("/api/v1/me/").status_code == 401
    assert here.get("/").status_code == 200


def test_all_other_devices_are_signed_out_at_once(user: User) -> None:
    here, others = sign_in(user), [sign_in(user) for _ in range(2)]
    assert "Signed out elsewhere: 2" in here.post("/accounts/devices/end/", follow=True).text
    assert [other.get("/").status_code for other in others] == [302, 302]
    assert here.get("/").status_code == 200


def test_a_new_password_signs_out_everywhere_else(user: User) -> None:
    here, there = sign_in(user), sign_in(user)
    new = {
        "oldpassword": PASSWORD,
        "password1": "a whole new passphrase",
        "password2": "a whole new passphrase",
    }
    assert here.post("/accounts/password/change/", new)["Location"] == HOME
    assert (here.get("/").status_code, there.get("/").status_code) == (200, 302)


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Windows"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Linux"),
        ("TesseraApp/2.1 (Android 15)", "TesseraApp"),
        ("", "An app"),
        ("<script>", "An app"),
    ],
)
def test_a_device_is_called_by_its_name(user_agent: str, name: str) -> None:
    assert device_name(user_agent) == name

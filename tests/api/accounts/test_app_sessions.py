"""Apps: they sign in, hold tokens that soon end, and are thrown out everywhere at once."""

from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from allauth.usersessions.models import UserSession
from django.db import connection
from django.test import Client

from app.accounts.models import Membership, User
from app.accounts.selectors import caller_by_credential, caller_by_user
from app.accounts.services import membership_end
from app.accounts.standing import fallen, standing_of
from inference_client.testing.fault_server import Script
from tests.api.scripted import call
from tests.factories import PASSWORD, user_make

pytestmark = pytest.mark.django_db
APP = "/_allauth/app/v1"
ME = "/api/v1/me/"


class App:
    """An app on somebody's phone."""

    def __init__(self, user: User) -> None:
        self.client = Client(HTTP_USER_AGENT="TesseraApp/2.1 (Android 15)")
        answer = self.post("auth/login", {"email": user.email, "password": PASSWORD})
        self.status = answer.status_code
        self.meta = answer.json().get("meta", {})
        self.access, self.refresh = self.meta.get("access_token", ""), self.meta.get("refresh_token", "")

    def post(self, path: str, body: dict[str, str], **headers: str):
        return self.client.post(f"{APP}/{path}", body, content_type="application/json", headers=headers)

    def renew(self, refresh: str = ""):
        return self.post("tokens/refresh", {"refresh_token": refresh or self.refresh})

    def me(self, access: str = "") -> int:
        return Client().get(ME, headers={"Authorization": f"Bearer {access or self.access}"}).status_code


def end_device(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    row = UserSession.objects.get(user=user, user_agent__startswith="TesseraApp")
    browser.post(f"/accounts/devices/{row.pk}/end/")


def suspend(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password("something else entirely")
    user.save()


def test_an_app_signs_in_and_calls_the_api_as_its_person(user: User) -> None:
    app = App(user)
    answer = Client().get(ME, headers={"Authorization": f"Bearer {app.access}"})
    assert answer.json()["email"] == user.email
    claims = jwt.decode(app.access, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] <= 600
    browser = Client()
    browser.force_login(user)
    assert "TesseraApp" in browser.get("/accounts/").text


def test_a_wrong_password_gives_an_app_nothing(user: User) -> None:
    app = App(user)
    answer = app.post("auth/login", {"email": user.email, "password": "guess"})
    assert answer.status_code == 400
    assert "access_token" not in answer.text


def test_the_second_step_is_asked_of_apps_too(user: User) -> None:
    from tests.api.accounts.test_account_page import second_factor, sign_in, totp

    secret = second_factor(sign_in(user))
    app = App(user)
    assert (app.status, app.access) == (401, "")
    token = app.meta["session_token"]
    answer = app.post("auth/2fa/authenticate", {"code": totp(secret, step=1)}, **{"X-Session-Token": token})
    assert app.me(answer.json()["meta"]["access_token"]) == 200


@pytest.mark.parametrize("end", [end_device, suspend, change_password])
def test_an_app_that_was_thrown_out_reaches_nothing(user: User, end) -> None:
    app = App(user)
    assert app.me() == 200
    end(user)
    assert app.me() == 401
    assert app.renew().status_code in {400, 401}
    response, _ = call("GET", "/v1/models", Script(), headers={"Authorization": f"Bearer {app.access}"})
    assert response.status_code == 401


def test_a_refresh_token_is_good_for_one_use_and_its_theft_ends_the_family(user: User) -> None:
    app = App(user)
    first = app.renew().json()["data"]
    second = app.renew(first["refresh_token"]).json()["data"]
    assert app.me(second["access_token"]) == 200
    assert app.renew(first["refresh_token"]).status_code == 400
    assert app.me(second["access_token"]) == 401
    assert app.renew(second["refresh_token"]).status_code == 400
    assert not UserSession.objects.filter(user=user).exists()


@pytest.mark.parametrize("forge", [lambda t: t[:-2], lambda t: "a.b.c", lambda t: t.rpartition(".")[0] + "."])
def test_a_token_that_was_changed_opens_nothing(user: User, forge) -> None:
    app = App(user)
    assert app.me(forge(app.access)) == 401
    assert app.renew(forge(app.refresh)).status_code == 400
    assert app.me() == 200
    assert app.me(app.refresh) == 401


@pytest.mark.django_db(transaction=True)
def test_of_two_refreshes_at_once_one_is_the_second_use() -> None:
    app = App(user_make())

    def renew(_: int) -> int:
        try:
            return App.renew(app).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(renew, range(2)))
    assert answers == [200, 400]
    assert app.me() == 401


def test_an_apps_stream_routes_know_it(user: User, team, chat_target) -> None:
    app = App(user)
    response, _ = call("GET", "/v1/models", Script(), headers={"Authorization": f"Bearer {app.access}"})
    assert response.status_code == 200


def test_whoever_reads_falls_with_the_session_and_what_they_asked_goes_on(user: User) -> None:
    app = App(user)
    caller = caller_by_credential(app.access)
    reader, asker = standing_of(caller), standing_of(caller, caller.default_team_id)
    assert fallen([reader, asker]) == set()
    end_device(user)
    assert fallen([reader, asker]) == {reader}
    suspend(user)
    assert fallen([reader, asker]) == {reader, asker}


def test_a_person_who_left_every_team_is_told_so(user: User) -> None:
    membership_end(membership=Membership.objects.get(user=user))
    User.objects.filter(pk=user.pk).update(default_team=None)
    with pytest.raises(Exception, match="no team yet"):
        caller_by_user(User.objects.get(pk=user.pk))

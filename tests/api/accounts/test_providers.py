"""Signing in through identity providers: who somebody is, what their groups mean, and what is refused."""

import http.client
import logging
import time
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client
from pytest_django import Settings

from app.accounts.inviting import Wish, invitation_create, invitation_link
from app.accounts.models import GroupRule, IdentityProvider, Membership, Role, Team, User
from app.accounts.selectors import caller_by_user
from app.common.crypto import encrypt
from tests.factories import PASSWORD, team_make, user_make
from tests.oidc import CLIENT, SECRET, Provider, provider_running

pytestmark = pytest.mark.django_db
ANN = {"sub": "ann-1", "email": "ann@corp.example", "email_verified": True, "name": "Ann"}


@pytest.fixture
def idp():
    with provider_running() as found:
        found.claims = dict(ANN)
        yield found


def enter(idp: Provider, slug: str = "corp", **fields: object) -> IdentityProvider:
    """Staff enter a provider."""
    return IdentityProvider.objects.create(
        slug=slug, name=slug.title(), issuer=idp.url, client_id=CLIENT, secret=encrypt(SECRET), **fields
    )


def come_in(
    client: Client, slug: str = "corp", *, next_url: str = "", process: str = "", follow: bool = False
):
    """The whole way: to the provider, as a browser goes, and back."""
    away = client.get(f"/accounts/oidc/{slug}/login/", {"next": next_url, "process": process or "login"})
    assert away.status_code == 302, away.text
    to = urlsplit(away["Location"])
    asked = parse_qs(to.query)
    assert set(asked["scope"][0].split()) >= {"openid", "email"}
    assert asked["code_challenge_method"] == ["S256"]
    line = http.client.HTTPConnection(to.netloc)
    line.request("GET", f"{to.path}?{to.query}")
    back = urlsplit(line.getresponse().headers["Location"])
    line.close()
    return client.get(f"{back.path}?{back.query}", follow=follow)


def who(client: Client) -> str | None:
    answer = client.get("/api/v1/me/")
    return answer.json()["email"] if answer.status_code == 200 else None


def roles(user: User) -> dict[str, str]:
    rows = Membership.objects.filter(user=user, team__is_personal=False)
    return dict(rows.values_list("team__name", "role"))


def test_a_stranger_comes_in_and_is_somebody_from_then_on(client: Client, idp: Provider) -> None:
    crew = team_make(owner=user_make(), name="Crew")
    enter(idp, default_team=crew, default_role=Role.VIEWER)
    assert "Sign in with Corp" in client.get("/accounts/login/").text
    assert come_in(client, next_url="/documents/")["Location"] == "/documents/"
    person = User.objects.get(email="ann@corp.example")
    assert (who(client), person.name, roles(person), person.default_team) == (
        "ann@corp.example", "Ann", {"Crew": "viewer"}, crew,
    )  # fmt: skip
    again = Client()
    idp.claims |= {"email": "ann.married@corp.example", "name": "Other"}
    assert come_in(again)["Location"] == "/"
    assert who(again) == "ann@corp.example"
    assert idp.refused == []


def test_the_provider_is_asked_at_sign_in_only(client: Client) -> None:
    with provider_running() as short_lived:
        short_lived.claims = dict(ANN)
        enter(short_lived)
        come_in(client)
    assert who(client) == ANN["email"]


def test_two_people_without_names_are_two_people(idp: Provider) -> None:
    enter(idp)
    for sub in ("one", "two"):
        idp.claims = {"sub": sub, "email": f"{sub}@corp.example", "name": "", "given_name": ""}
        client = Client()
        come_in(client)
        assert who(client) == f"{sub}@corp.example"


def test_one_subject_of_two_providers_is_two_people(idp: Provider) -> None:
    enter(idp)
    come_in(Client())
    with provider_running() as second:
        enter(second, "other")
        second.claims = ANN | {"email": "ann@other.example"}
        client = Client()
        assert "Sign in with Other" in client.get("/accounts/login/").text
        come_in(client, "other")
        assert who(client) == "ann@other.example"
    assert SocialAccount.objects.filter(uid="ann-1").count() == 2


def test_an_address_alone_opens_nobodys_account(client: Client, idp: Provider) -> None:
    victim = user_make(email="ann@corp.example")
    enter(idp)
    answer = come_in(client)
    assert (answer.status_code, "connect Corp on your account page" in answer.text) == (403, True)
    assert who(client) is None
    assert not SocialAccount.objects.filter(user=victim).exists()


def test_whoever_shows_that_both_are_theirs_connects_them(client: Client, idp: Provider) -> None:
    user = user_make(email="ann@corp.example")
    enter(idp)
    client.post("/accounts/login/", {"username": user.email, "password": PASSWORD})
    page = come_in(client, process="connect", follow=True)
    client.post(page.redirect_chain[-1][0], {"password": PASSWORD}, follow=True)
    assert "connected" in client.get("/accounts/").text
    other = Client()
    come_in(other)
    assert who(other) == user.email
    identity = SocialAccount.objects.get(user=user)
    client.post(f"/accounts/providers/{identity.pk}/end/")
    assert not SocialAccount.objects.exists()


def test_the_only_way_in_is_not_taken_away(client: Client, idp: Provider) -> None:
    enter(idp)
    come_in(client)
    answer = client.post(f"/accounts/providers/{SocialAccount.objects.get().pk}/end/", follow=True)
    assert "only way you sign in" in answer.text
    assert SocialAccount.objects.exists()


def test_whoever_has_no_password_shows_who_they_are_at_the_provider(client: Client, idp: Provider) -> None:
    enter(idp)
    come_in(client)
    page = "/accounts/2fa/webauthn/add/"
    assert client.get(page).status_code == 200
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 1000
    session.save()
    assert client.get(page)["Location"].startswith("/accounts/oidc/corp/login/?next=")
    assert come_in(client, next_url=page)["Location"] == page
    assert client.get(page).status_code == 200


KEYCLOAK = {"realm_access": {"roles": ["eng"]}}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("groups", {"groups": ["eng", "other"]}),
        ("groups", {"groups": "eng"}),
        ("realm_access.roles", KEYCLOAK),
        ("https://corp.example/groups", {"https://corp.example/groups": ["eng"]}),
    ],
)
def test_a_group_means_a_role_in_a_team(client: Client, idp: Provider, claim: str, said: dict) -> None:
    crew = team_make(owner=user_make(), name="Crew")
    row = enter(idp, groups_claim=claim)
    GroupRule.objects.create(provider=row, group="eng", team=crew, role=Role.ADMIN)
    idp.claims |= said
    come_in(client)
    assert roles(User.objects.get(email=ANN["email"])) == {"Crew": "admin"}


def test_groups_add_change_and_remove_at_each_sign_in(idp: Provider) -> None:
    boss = user_make()
    teams = {name: team_make(owner=boss, name=name) for name in ("Crew", "Night", "Own")}
    row = enter(idp, groups_claim="groups")
    for group, team, role in (
        ("eng", "Crew", Role.MEMBER), ("lead", "Crew", Role.ADMIN), ("night", "Night", Role.VIEWER),
    ):  # fmt: skip
        GroupRule.objects.create(provider=row, group=group, team=teams[team], role=role)
    seen, person = [], None
    for said in (["eng"], ["lead", "eng", "night"], ["night"], []):
        idp.claims["groups"] = said
        come_in(Client())
        person = User.objects.get(email=ANN["email"])
        Membership.objects.get_or_create(team=teams["Own"], user=person, role=Role.MEMBER)
        seen.append({name: role for name, role in roles(person).items() if name != "Own"})
    assert seen == [{"Crew": "member"}, {"Crew": "admin", "Night": "viewer"}, {"Night": "viewer"}, {}]
    assert roles(person) == {"Own": "member"}
    assert Membership.objects.filter(user=boss, role=Role.OWNER, team=teams["Crew"]).exists()


@pytest.mark.parametrize(
    "said",
    [{}, {"groups": None}, {"groups": {"a": 1}}, {"groups": [1]}, {"_claim_names": {"groups": "src1"}}],
)
def test_a_missing_claim_changes_nothing_and_is_logged(idp: Provider, said: dict, caplog) -> None:
    crew = team_make(owner=user_make(), name="Crew")
    row = enter(idp, groups_claim="groups")
    GroupRule.objects.create(provider=row, group="eng", team=crew)
    idp.claims["groups"] = ["eng"]
    come_in(Client())
    idp.claims = ANN | said
    with caplog.at_level(logging.WARNING):
        come_in(Client())
    assert roles(User.objects.get(email=ANN["email"])) == {"Crew": "member"}
    assert any("sent no claim groups" in line for line in caplog.messages)
    assert ANN["email"] not in caplog.text


def test_groups_told_by_user_info_alone_count_too(client: Client, idp: Provider) -> None:
    row = enter(idp, groups_claim="groups")
    crew = team_make(owner=user_make(), name="Crew")
    GroupRule.objects.create(provider=row, group="eng", team=crew)
    idp.info = {"groups": ["eng"]}
    come_in(client)
    assert roles(User.objects.get(email=ANN["email"])) == {"Crew": "member"}


def test_the_last_owner_is_left_in(idp: Provider) -> None:
    row = enter(idp, groups_claim="groups")
    idp.claims["groups"] = []
    come_in(Client())
    person = User.objects.get(email=ANN["email"])
    crew = team_make(owner=person, name="Crew")
    GroupRule.objects.create(provider=row, group="eng", team=crew)
    come_in(Client())
    assert roles(person) == {"Crew": "owner"}


@pytest.mark.parametrize(
    ("claims", "let_in"),
    [
        ({}, True),
        ({"email": "ANN@Corp.Example"}, True),
        ({"email": "ann@evil.example"}, False),
        ({"email": "ann@corp.example.evil.example"}, False),
        ({"email_verified": False}, False),
        ({"email": None}, False),
    ],
)
def test_a_provider_lets_in_its_domains_only(
    client: Client, idp: Provider, claims: dict, let_in: bool
) -> None:
    enter(idp, domains="corp.example @second.example")
    idp.claims |= claims
    answer = come_in(client)
    assert answer.status_code == (302 if let_in else 403)
    assert User.objects.exists() == let_in


def test_without_an_address_there_is_no_account(client: Client, idp: Provider) -> None:
    enter(idp)
    del idp.claims["email"]
    answer = come_in(client)
    assert (answer.status_code, "claim `email`" in answer.text) == (403, True)


OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.mark.parametrize(
    ("spoil", "sign"),
    [
        (lambda c: c | {"iss": "https://evil.example"}, None),
        (lambda c: c | {"aud": "somebody-else"}, None),
        (lambda c: c | {"exp": int(time.time()) - 100}, None),
        (lambda c: c | {"sub": "somebody-else"}, None),
        (lambda c: {k: v for k, v in c.items() if k != "sub"}, None),
        (lambda c: c, lambda c: jwt.encode(c, OTHER_KEY, algorithm="RS256", headers={"kid": "one"})),
        (lambda c: c, lambda c: jwt.encode(c, OTHER_KEY, algorithm="RS256", headers={"kid": "two"})),
        (lambda c: c, lambda c: jwt.encode(c, "x" * 32, algorithm="HS256", headers={"kid": "one"})),
        (lambda c: c, lambda c: jwt.encode(c, None, algorithm="none")),
        (lambda c: c, lambda c: "no token at all"),
        (lambda c: c, lambda c: ""),
    ],
    ids=[
        "issuer",
        "audience",
        "expired",
        "other-subject",
        "no-subject",
        "key",
        "kid",
        "hs256",
        "none",
        "garbage",
        "absent",
    ],
)
def test_an_id_token_that_does_not_hold_lets_nobody_in(client: Client, idp: Provider, spoil, sign) -> None:
    enter(idp)
    idp.spoil, idp.sign = spoil, sign
    answer = come_in(client)
    assert (answer.status_code, "Begin again" in answer.text) == (401, True)
    assert not User.objects.exists()


def test_a_provider_that_calls_itself_another_is_not_used(client: Client, idp: Provider) -> None:
    enter(idp)
    idp.issuer = "https://evil.example"
    assert client.get("/accounts/oidc/corp/login/").status_code == 401


def test_a_provider_that_is_away_says_so(client: Client) -> None:
    IdentityProvider.objects.create(slug="away", name="Away", issuer="http://127.0.0.1:1", client_id=CLIENT)
    assert client.get("/accounts/oidc/away/login/").status_code == 401


def test_a_provider_that_is_switched_off_or_unknown_is_not_there(client: Client, idp: Provider) -> None:
    enter(idp, is_active=False)
    assert client.get("/accounts/oidc/corp/login/").status_code == 404
    assert client.get("/accounts/oidc/nobody/login/").status_code == 404
    assert "Corp" not in client.get("/accounts/login/").text


def test_an_answer_that_nobody_asked_for_signs_nobody_in(client: Client, idp: Provider) -> None:
    enter(idp)
    assert client.get("/accounts/oidc/corp/login/callback/", {"code": "x", "state": "y"}).status_code == 401
    away = urlsplit(client.get("/accounts/oidc/corp/login/")["Location"])
    state = parse_qs(away.query)["state"][0]
    other = Client().get("/accounts/oidc/corp/login/callback/", {"code": "x", "state": state})
    assert other.status_code == 401
    stopped = client.get(
        "/accounts/oidc/corp/login/callback/", {"error": "access_denied", "state": state}, follow=True
    )
    assert "You stopped it" in stopped.text


def test_a_suspended_person_stays_out_and_keeps_what_they_had(idp: Provider) -> None:
    row = enter(idp, groups_claim="groups")
    come_in(Client())
    crew = team_make(owner=user_make(), name="Crew")
    GroupRule.objects.create(provider=row, group="eng", team=crew)
    User.objects.update(is_active=False)
    idp.claims["groups"] = ["eng"]
    client = Client()
    assert come_in(client)["Location"] == "/accounts/inactive/"
    assert who(client) is None
    assert roles(User.objects.get(email=ANN["email"])) == {}


def test_where_people_come_through_the_provider_a_password_opens_nothing(
    client: Client, idp: Provider, settings: Settings
) -> None:
    settings.SSO_ONLY = True
    enter(idp)
    user, boss = user_make(), user_make(is_staff=True)
    page = client.get("/accounts/login/").text
    assert ("Sign in with Corp" in page, 'type="password"' in page) == (True, False)
    for person in (user, boss):
        answer = client.post(
            "/accounts/login/", {"username": person.email, "password": PASSWORD}, follow=True
        )
        assert "through the provider" in answer.text
    app = client.post(
        "/_allauth/app/v1/auth/login",
        {"email": boss.email, "password": PASSWORD},
        content_type="application/json",
    )
    assert "access_token" not in app.text
    form = {"username": user.email, "password": PASSWORD}
    assert "through the provider" in client.post("/accounts/break-glass/", form, follow=True).text
    assert who(client) is None
    come_in(client)
    assert who(client) == ANN["email"]


def test_whoever_is_invited_comes_through_the_provider_and_joins(
    client: Client, idp: Provider, settings: Settings
) -> None:
    settings.SSO_ONLY = True
    enter(idp, domains="corp.example")
    del idp.claims["email_verified"]
    boss = user_make()
    wish = Wish(team_make(owner=boss, name="Crew"), ANN["email"], "Ann", "member")
    path = urlsplit(invitation_link(invitation_create(caller=caller_by_user(boss), wish=wish))).path
    shown = client.get(path).text
    assert ("Go on with Corp" in shown, 'type="password"' in shown) == (True, False)
    assert client.post(path, {"name": "Ann", "password": "a whole new passphrase"})["Location"] == path
    assert not User.objects.filter(email=ANN["email"]).exists()
    assert come_in(client, next_url=path)["Location"] == path
    client.post(path)
    assert roles(User.objects.get(email=ANN["email"])) == {"Crew": "member"}


def test_staff_keep_one_form_for_the_day_when_no_provider_answers(
    client: Client, settings: Settings, caplog
) -> None:
    boss = user_make(is_staff=True)
    assert client.get("/accounts/break-glass/").status_code == 302
    settings.SSO_ONLY = True
    assert 'type="password"' in client.get("/accounts/break-glass/").text
    with caplog.at_level(logging.WARNING):
        client.post("/accounts/break-glass/", {"username": boss.email, "password": PASSWORD})
    assert who(client) == boss.email
    assert "past the provider" in caplog.text


def test_staff_enter_a_provider_and_its_secret_is_never_shown(
    client: Client, idp: Provider, team: Team
) -> None:
    client.force_login(user_make(is_staff=True))
    page = "/admin/accounts/identityprovider/add/"
    values = {
        "slug": "corp", "name": "Corp", "issuer": idp.url + "/", "client_id": CLIENT, "new_secret": SECRET,
        "is_active": "on", "default_role": "member", "groups_claim": "groups",
        "rules-TOTAL_FORMS": "1", "rules-INITIAL_FORMS": "0", "rules-0-group": "eng",
        "rules-0-team": str(team.pk), "rules-0-role": "member",
    }  # fmt: skip
    assert client.post(page, values).status_code == 302
    row = IdentityProvider.objects.get()
    assert (row.issuer, SECRET in row.secret, row.rules.get().group) == (idp.url, False, "eng")
    shown = client.get(f"/admin/accounts/identityprovider/{row.pk}/change/").text
    assert "/accounts/oidc/corp/login/callback/" in shown
    assert SECRET not in shown and row.secret not in shown
    changed = values | {
        "slug": "other",
        "issuer": "https://evil.example",
        "new_secret": "",
        "rules-TOTAL_FORMS": "0",
    }
    client.post(f"/admin/accounts/identityprovider/{row.pk}/change/", changed)
    row.refresh_from_db()
    assert (row.slug, row.issuer) == ("corp", idp.url)
    come_in(Client())
    assert User.objects.filter(email=ANN["email"]).exists()

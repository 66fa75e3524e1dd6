"""The pages under /admin/: who gets in, what they show, and what can never be rewritten there."""

from datetime import timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.test import Client

from app.accounts.models import ApiKey, IdentityProvider, Membership, Team, User
from app.accounts.selectors import caller_by_key, caller_by_user
from app.audit.models import AuditEntry
from app.billing.models import (
    Budget,
    BudgetWindow,
    CreditMovement,
    Delivery,
    ExchangeRate,
    LedgerEntry,
    LimitRequest,
    Pause,
    PriceVersion,
    RateLimit,
    Reservation,
    TeamRate,
    Webhook,
)
from app.billing.outbox import webhook_add
from app.catalog.models import Backend, Deployment, ModelRoute
from app.chat.models import RetentionRule
from app.common.clock import now
from app.common.models import uuid7
from retrieval.models import EmbeddingSpace
from tests.api.admin.conftest import errors, page, post, told
from tests.factories import PASSWORD, key_make, user_make

pytestmark = pytest.mark.django_db

REGISTERED = (
    User, Team, Membership, ApiKey, Backend, Deployment, ModelRoute, PriceVersion, Budget, BudgetWindow, Reservation,
    LedgerEntry, Webhook, Delivery, TeamRate, ExchangeRate, CreditMovement, LimitRequest, Pause, RateLimit, AuditEntry,
    IdentityProvider,
    RetentionRule, EmbeddingSpace,
)  # fmt: skip
READ_ONLY = (
    ApiKey,
    BudgetWindow,
    Reservation,
    LedgerEntry,
    PriceVersion,
    Webhook,
    Delivery,
    AuditEntry,
)


# ------------------------------------------------------------------------------------------------ who gets in


def test_strangers_sign_in_on_the_one_page_and_come_back(client: Client, staff: User) -> None:
    answer = client.get(page(Backend), follow=True)
    assert answer.redirect_chain[-1][0] == f"/accounts/login/?next={page(Backend)}"
    answer = client.post(answer.redirect_chain[-1][0], {"username": staff.email, "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, page(Backend))
    assert client.get("/admin/login/")["Location"] == "/admin/"


@pytest.mark.parametrize("model", REGISTERED)
def test_people_without_the_flag_are_told_so(client: Client, model: type[Model]) -> None:
    client.force_login(user_make())
    answer = client.get(page(model), follow=True)
    assert answer.status_code == 403
    assert "mark your account as staff" in answer.content.decode()


def test_the_flag_is_enough(client: Client) -> None:
    client.force_login(User.objects.create_user("plain@example.org", PASSWORD, is_staff=True))
    for model in REGISTERED:
        assert client.get(page(model)).status_code == 200


# ------------------------------------------------------------------------------------------------ what is shown


def test_only_metadata_and_money_are_registered() -> None:
    registered = {model for model in admin.site._registry if model._meta.app_label != "admin"}
    assert registered == set(REGISTERED)
    content = {*apps.get_app_config("chat").get_models(), *apps.get_app_config("retrieval").get_models()}
    assert content
    # A rule about content is none, and neither is what it is embedded with.
    assert not (content - {RetentionRule, EmbeddingSpace}) & registered


class _Inline(HTMLParser):
    """Collects what a strict policy would not let a browser do."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "style" or "style" in named or any(name.startswith("on") for name in named):
            self.found.append(str(self.get_starttag_text()))
        if tag == "script" and "src" not in named and named.get("type") != "application/json":
            self.found.append(str(self.get_starttag_text()))


def test_every_page_keeps_to_the_policy_of_the_product(
    browser: Client, booked: LedgerEntry, backend: Backend, user: User, team: Team, staff: User
) -> None:
    key = key_make(user=user, team=team).row
    Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="chat/m")
    rows = [user, team, key, backend, Deployment.objects.get(), PriceVersion.objects.get(), booked]
    rows += [Budget.objects.first(), BudgetWindow.objects.first(), Reservation.objects.get()]
    rows.append(Membership.objects.get(team=team))
    addresses = [
        "/admin/",
        "/admin/password_change/",
        page(User, "add"),
        f"/admin/accounts/user/{user.pk}/password/",
    ]
    addresses += [page(model) for model in REGISTERED] + [page(type(r), "change", r.pk) for r in rows]
    addresses += [
        page(model, "add")
        for model in REGISTERED
        # A request is made by whoever needs more, never for them.
        if model not in (LimitRequest, EmbeddingSpace) and (model not in READ_ONLY or model is PriceVersion)
    ]
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code == 200, address
        parser = _Inline()
        parser.feed(answer.content.decode())
        assert parser.found == [], address
        assert "'unsafe" not in answer["Content-Security-Policy"]
        for secret in ("s3cret-of-the-server", backend.secret, key.digest):
            assert secret not in answer.content.decode(), address


@pytest.mark.parametrize("model", READ_ONLY)
def test_read_only_rows_have_no_form(
    browser: Client, model: type[Model], booked: LedgerEntry, user: User, team: Team
) -> None:
    key_make(user=user, team=team)
    webhook_add(name="books", url="https://hooks.example/in", from_start=True)
    row = model._default_manager.first()
    before = model._default_manager.filter(pk=row.pk).values().get()
    assert 'name="_save"' not in browser.get(page(model, "change", row.pk)).content.decode()
    answer = browser.post(page(model, "change", row.pk), dict.fromkeys(before, "1"))
    assert answer.status_code == 403
    assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=row.pk).values().get() == before
    if model not in (PriceVersion, Webhook):
        assert browser.get(page(model, "add")).status_code == 403


@pytest.mark.parametrize("model", [User, Team, Backend, Deployment, Budget])
def test_what_others_hang_on_is_not_deleted(
    browser: Client, model: type[Model], backend: Backend, team: Team
) -> None:
    Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="p")
    row = model._default_manager.first()
    assert browser.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=row.pk).exists()


def test_money_is_shown_to_the_last_digit(browser: Client, booked: LedgerEntry, team: Team) -> None:
    assert booked.price == Decimal("0.000104")
    for address in (page(LedgerEntry), page(LedgerEntry, "change", booked.pk), page(Reservation)):
        text = browser.get(address).content.decode()
        assert "0.00010400 EUR" in text
        assert team.name in text
    # No price of what the server asks is set: unknown is not 0.
    assert "unknown" in browser.get(page(LedgerEntry, "change", booked.pk)).content.decode()


@pytest.mark.parametrize(
    ("model", "query", "count"),
    [
        (LedgerEntry, "", 1),
        (LedgerEntry, "team={team}", 1),
        (LedgerEntry, "team={other}", 0),
        (LedgerEntry, "team=nonsense", 1),
        (LedgerEntry, "estimated__exact=1", 1),
        (LedgerEntry, "estimated__exact=0", 0),
        (LedgerEntry, "call_kind=chat", 1),
        (LedgerEntry, "call_kind=embedding", 0),
        (LedgerEntry, "kind=refund", 0),
        (LedgerEntry, "effective_at__gte={tomorrow}", 0),
        (LedgerEntry, "q={account}", 1),
        (LedgerEntry, "q={other}", 0),
        (LedgerEntry, "q=chat/m", 1),
        (LedgerEntry, "q=no-uuid", 0),
        (Reservation, "state=settled&team={team}", 1),
        (Reservation, "state=held", 0),
        (Reservation, "q={account}", 1),
        (Reservation, "q=no-uuid", 0),
        (PriceVersion, "in_force=now", 1),
        (PriceVersion, "q=chat/m&side=cost", 0),
        (BudgetWindow, "unit=tokens", 0),
    ],
)
def test_lists_are_narrowed(
    browser: Client, booked: LedgerEntry, user: User, team: Team, model: type[Model], query: str, count: int
) -> None:
    facts = {
        "team": team.pk,
        "other": uuid7(),
        "account": user.account_id,
        "tomorrow": quote(str(now() + timedelta(days=1))),
    }
    answer = browser.get(f"{page(model)}?{query.format(**facts)}")
    assert answer.status_code == 200
    assert answer.context["cl"].result_count == count


# ------------------------------------------------------------------------------------------------ people


def test_a_new_person_has_a_personal_team_and_can_sign_in(browser: Client, client: Client) -> None:
    fields = {"email": "New.One@Example.org", "name": "New One", "password1": PASSWORD, "password2": PASSWORD}
    assert post(browser, page(User, "add"), **fields).status_code == 302
    made = User.objects.get(email="new.one@example.org")
    assert made.check_password(PASSWORD)
    assert (made.is_staff, made.default_team.is_personal) == (False, True)
    assert caller_by_user(made).role_in(made.default_team_id) == "owner"
    weak = post(
        browser, page(User, "add"), **fields | {"email": "b@example.org", "password1": "a", "password2": "a"}
    )
    assert "short" in errors(weak)
    assert "already" in errors(post(browser, page(User, "add"), **fields))


def test_suspending_ends_a_session_and_nobody_suspends_themselves(browser: Client, staff: User) -> None:
    other = user_make(is_staff=True)
    theirs = Client()
    theirs.force_login(other)
    fields = {"email": other.email, "name": "N", "default_team": other.default_team_id, "is_staff": "on"}
    assert post(browser, page(User, "change", other.pk), **fields).status_code == 302
    assert theirs.get("/admin/").status_code == 302
    fields = {"email": staff.email, "default_team": staff.default_team_id, "is_active": "on"}
    assert "your own access" in errors(post(browser, page(User, "change", staff.pk), **fields))
    staff.refresh_from_db()
    assert staff.is_staff


def test_somebody_spends_by_default_only_from_a_team_they_are_in(browser: Client, user: User) -> None:
    foreign = Team.objects.get(memberships__user=user_make())
    fields = {"email": user.email, "is_active": "on", "default_team": foreign.pk}
    assert "valid choice" in errors(post(browser, page(User, "change", user.pk), **fields))


def test_another_password(browser: Client, user: User) -> None:
    fields = {"password1": "another long one", "password2": "another long one"}
    assert post(browser, f"/admin/accounts/user/{user.pk}/password/", **fields).status_code == 302
    user.refresh_from_db()
    assert user.check_password("another long one")


def test_a_team_begins_with_an_owner_and_keeps_its_slug(browser: Client, user: User) -> None:
    assert post(browser, page(Team, "add"), name="House", owner=user.pk).status_code == 302
    team = Team.objects.get(name="House")
    assert team.memberships.get().role == "owner"
    formset = {"memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0}
    fields = {"name": "Home", "level": "private", "slug": "taken"}
    assert post(browser, page(Team, "change", team.pk), **fields, **formset).status_code == 302
    slug = team.slug
    team.refresh_from_db()
    assert (team.name, team.level, team.slug) == ("Home", "private", slug)


def test_roles_are_given_and_who_leaves_spends_from_it_no_more(browser: Client, team: Team) -> None:
    other = user_make()
    post(browser, page(Membership, "add"), team=team.pk, user=other.pk, role="viewer")
    row = Membership.objects.get(team=team, user=other)
    assert "exists" in errors(
        post(browser, page(Membership, "add"), team=team.pk, user=other.pk, role="owner")
    )
    post(browser, page(Membership, "change", row.pk), role="admin", user=user_make().pk)
    row.refresh_from_db()
    assert (row.user_id, row.role) == (other.pk, "admin")
    User.objects.filter(pk=other.pk).update(default_team=team)
    post(browser, page(Membership), action="delete_selected", _selected_action=row.pk, post="yes")
    other.refresh_from_db()
    assert caller_by_user(other).role_in(other.default_team_id) == "owner"
    assert caller_by_user(other).role_in(team.pk) is None


def test_a_personal_team_takes_nobody_in_and_loses_nobody(browser: Client, user: User) -> None:
    own = Membership.objects.get(user=user, team__is_personal=True)
    assert browser.get(page(Membership, "change", own.pk)).status_code == 302
    answer = post(browser, page(Membership, "add"), team=own.team_id, user=user_make().pk, role="member")
    assert "valid choice" in errors(answer)


def test_a_key_is_revoked_for_good(browser: Client, user: User, team: Team) -> None:
    key, other = key_make(user=user, team=team), key_make(user=user, team=team)
    answer = post(browser, page(ApiKey), action="revoke", _selected_action=key.row.pk)
    assert "Keys revoked: 1." in told(answer)
    assert caller_by_key(key.plain) is None
    assert caller_by_key(other.plain) is not None


# ------------------------------------------------------------------------------------------------ servers


def server(**fields: Any) -> dict[str, Any]:
    return {"name": "new", "kind": "vllm", "address": "http://inference:8000/v1/", "enabled": "on"} | fields


@pytest.mark.parametrize(
    ("fields", "leaves"),
    [
        ({"address": "http://10.0.0.9/v1"}, False),
        ({"address": "http://10.0.0.9/v1", "kind": "openai"}, True),
        ({"address": "https://203.0.113.7/v1"}, True),
        ({"address": "https://203.0.113.7/v1", "where": "no"}, False),
        ({"address": "http://10.0.0.9/v1", "where": "yes"}, True),
    ],
)
def test_a_new_server_stands_where_its_address_says_or_somebody_does(
    browser: Client, fields: dict[str, Any], leaves: bool
) -> None:
    assert post(browser, page(Backend, "add"), **server(**fields)).status_code == 302
    assert Backend.objects.get(name="new").leaves_premises is leaves


def test_a_servers_key_goes_in_and_stays(browser: Client) -> None:
    post(browser, page(Backend, "add"), **server(key="first"))
    row = Backend.objects.get(name="new")
    assert (row.api_key, row.base_url) == ("first", "http://inference:8000/v1")
    assert "first" not in row.secret
    for fields, expected in (({}, "first"), ({"key": "second"}, "second"), ({"forget_key": "on"}, "")):
        assert (
            post(browser, page(Backend, "change", row.pk), **server(**fields, where="no")).status_code == 302
        )
        row.refresh_from_db()
        assert row.api_key == expected


def test_what_is_no_address_is_refused_beside_it(browser: Client) -> None:
    answer = post(browser, page(Backend, "add"), **server(address="http://user:hidden@host/v1"))
    assert "user" in errors(answer)
    assert not Backend.objects.filter(name="new").exists()


def test_a_server_that_begins_to_leave_sees_nothing_private(browser: Client, backend: Backend) -> None:
    model = Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="p")
    answer = post(browser, page(Backend, "change", backend.pk), **server(name="gpu", where="yes"))
    assert "internal content at most: 1" in told(answer)
    model.refresh_from_db()
    assert model.clearance == "internal"


def test_a_new_model_is_cleared_for_internal_content_unless_said(browser: Client, backend: Backend) -> None:
    text = browser.get(page(Deployment, "add")).content.decode()
    assert '<option value="internal" selected>' in text
    fields = {
        "backend": backend.pk, "public_name": "m", "upstream_model": "m", "purpose": "chat", "price_key": "chat/m",
        "max_output_tokens": 512, "clearance": "private", "slots": 4, "priority": 3, "enabled": "on",
    }  # fmt: skip
    assert "no tokenizer" in errors(post(browser, page(Deployment, "add"), **fields, tokenizer="abacus"))
    assert post(browser, page(Deployment, "add"), **fields, tokenizer="o200k_base").status_code == 302
    row = Deployment.objects.get(public_name="m")
    assert (row.context_window, row.clearance, row.max_output_tokens) == (None, "private", 512)
    assert "?q=chat%2Fm" in browser.get(page(Deployment)).content.decode()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"model_names": "m\n\n m "}, ""),
        ({"successor": "m"}, ""),
        ({"model_names": "m\nghost"}, "no model ghost"),
        ({"successor": "ghost"}, "no model or route ghost"),
        ({"successor": "old"}, "its own successor"),
        ({"model_names": "m", "successor": "m"}, "either"),
        ({}, "either"),
    ],
)
def test_a_route_names_models_there_are_or_a_successor(
    browser: Client, backend: Backend, fields: dict[str, str], complaint: str
) -> None:
    Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="p")
    answer = post(browser, page(ModelRoute, "add"), name="old", **fields)
    if complaint:
        assert complaint in errors(answer)
        return
    assert answer.status_code == 302
    row = ModelRoute.objects.get(name="old")
    assert (row.model_names, row.successor) == (
        ["m", "m"] if "model_names" in fields else [],
        fields.get("successor", ""),
    )
    assert "old" in browser.get(page(ModelRoute)).content.decode()
    assert "\nm" in browser.get(page(ModelRoute, "change", row.pk)).content.decode() or row.successor

"""A person at the account pages in a real browser: a passkey, a second step, and a device that is signed out."""

import re

import pytest
from playwright.sync_api import expect

from tests.api.accounts.test_account_page import totp
from tests.e2e.browser import PHONE, Opener, Person, authenticator, on_localhost
from tests.e2e.live import Live

pytestmark = pytest.mark.e2e
EMAIL, PASSWORD = "walker@example.org", "a long walk in the hills"


def invited(owner: Person, live: Live) -> str:
    """The administrator invites somebody; gives the link."""
    owner.open("/accounts/")
    owner.page.get_by_role("link", name="Make a team").click()
    owner.page.get_by_label("Name").fill("Walkers")
    owner.page.get_by_label("Owner").select_option(label="Administrator")
    owner.page.get_by_role("button", name="Save", exact=True).click()
    owner.page.goto("/accounts/")
    owner.page.get_by_role("listitem").filter(has_text="Walkers").get_by_role("link", name="Members").click()
    owner.page.get_by_label("E-mail").fill(EMAIL)
    owner.page.get_by_role("button", name="Invite", exact=True).click()
    link = owner.page.get_by_label(f"Link for {EMAIL}").input_value()
    return on_localhost(live, re.sub(r"^https?://[^/]+", "", link))


def test_an_invited_person_guards_an_account_and_signs_in_without_a_password(
    seat: Opener, live: Live
) -> None:
    link = invited(seat(), live)
    walker = seat(size=PHONE)
    page = walker.page
    authenticator(walker)
    page.goto(link)
    page.get_by_label("Name").fill("Walker")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make the account and join").click()
    page.wait_for_url(on_localhost(live, "/"))

    page.goto(on_localhost(live, "/accounts/2fa/webauthn/add/"))
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("What to call it").fill("My phone")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("list", name="Unused codes").get_by_role("listitem")).to_have_count(10)
    page.goto(on_localhost(live, "/accounts/"))
    expect(page.get_by_role("heading", name="My phone")).to_be_visible()
    assert walker.overflow() == 0

    page.goto(on_localhost(live, "/accounts/2fa/totp/activate/"))
    secret = page.get_by_label("Or type this secret").input_value()
    page.get_by_label("Authenticator code").fill(totp(secret))
    page.get_by_role("button", name="Turn it on").click()
    page.goto(on_localhost(live, "/accounts/"))
    expect(page.get_by_role("heading", name="Authenticator app on")).to_be_visible()

    walker.context.clear_cookies()
    page.goto(on_localhost(live, "/accounts/login/?next=/documents/"))
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(on_localhost(live, "/documents/"))

    walker.context.clear_cookies()
    page.goto(on_localhost(live, "/accounts/login/"))
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(on_localhost(live, "/"))
    page.goto(on_localhost(live, "/accounts/"))
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_role("status")).to_contain_text("Signed out elsewhere")

"""The same product on a phone, at a limit, and for whoever answers for the bill."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import PHONE, Opener, Person
from tests.e2e.live import Live
from tests.stack import command

pytestmark = [pytest.mark.e2e, pytest.mark.live]

QUESTION = "What happens when a budget is used up?"
POOR_TEAM = """
from decimal import Decimal
from app.accounts.models import User
from app.accounts.services import team_create
from app.billing.services import budget_set

team = team_create(name="Browser tests", owner=User.objects.get(email={email!r}))
print(team.id, budget_set(scope="team", unit="money", limit=Decimal(0), period="month", team_id=team.id,
                          name="the team of the browser tests"))
"""


@pytest.fixture(scope="module")
def handbook(live: Live) -> str:
    """The collection that every installation begins with, once it can be searched."""
    found = live.http.get("/api/v1/collections/").json()["items"]
    return next(str(item["id"]) for item in found if item["name"] == "Tessera handbook")


@contextmanager
def poor_team(live: Live) -> Iterator[tuple[str, str]]:
    """(id of a team that may spend nothing, id of the budget that says so); nobody else's money is touched."""
    code = POOR_TEAM.format(email=live.run["admin_email"])
    done = command("shell", "-c", code, env={"TESSERA_DATA": str(live.data)})
    assert done.returncode == 0, done.stdout
    team, budget = done.stdout.split()[-2:]
    yield team, budget
    live.sql("UPDATE billing_budget SET active = false WHERE id = %s", budget)
    live.sql("DELETE FROM accounts_membership WHERE team_id = %s", team)


def test_a_used_up_budget_is_said_and_the_question_kept(seat: Opener, live: Live) -> None:
    # The team goes while its page is still open, which then finds nothing.
    person = seat(expected=("status of 402", "status of 404"))
    with poor_team(live) as (team, budget):
        person.begin(team=team)
        person.composer.fill(QUESTION)
        expect(person.page.locator("#meter-line")).to_contain_text("Not enough left")
        person.page.keyboard.press("Enter")
        refusal = person.page.locator("#composer-problem")
        expect(refusal).to_contain_text("is reached")
        expect(refusal).to_contain_text("An owner of the team can raise it")
        expect(refusal).to_contain_text("It resets")
        expect(person.composer).to_have_value(QUESTION)
        expect(person.page.locator(".answer")).to_have_count(0)
        refusal.get_by_role("button", name="Ask for more").click()
        expect(refusal).to_contain_text("Asked.")
        # Nothing was said in it, so no conversation is left behind.
        assert not live.sql("SELECT 1 FROM chat_conversation WHERE team_id = %s", team)
        person.page.reload()
        expect(person.composer).to_have_value(QUESTION)
        live.sql("UPDATE billing_budget SET active = false WHERE id = %s", budget)
        person.composer.press("Enter")
        person.answered()
        expect(person.composer).to_have_value("")
        expect(refusal).to_be_hidden()
    assert str(live.sql("SELECT team_id FROM chat_turn WHERE id = %s", person.turn()["id"])[0][0]) == team


def test_a_phone_has_everything_within_its_width(seat: Opener, handbook: str) -> None:
    person = seat(size=PHONE, expected=("status of 404",))
    page = person.page
    person.begin(collections=(handbook,))
    page.get_by_label("Your question").tap()
    person.composer.fill(QUESTION)
    expect(page.locator("#meter-line .price")).to_be_visible()
    page.get_by_role("button", name="Send").tap()
    person.answered()
    assert person.overflow() == 0
    page.get_by_role("button", name="Open the menu").tap()
    own = page.locator(".conversation-link[aria-current]")
    expect(own).to_be_in_viewport(ratio=1)
    page.locator(".scrim").tap(position={"x": 380, "y": 400})
    expect(own).to_be_hidden()
    sheet_shows_a_passage(person)
    for path in ("/documents/", f"/documents/?collection={handbook}", "/dashboard/", "/nowhere/"):
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        assert person.overflow() == 0, path


def sheet_shows_a_passage(person: Person) -> None:
    page = person.page
    person.answer.get_by_role("button", name="Source", exact=False).first.tap()
    sheet = page.get_by_role("complementary", name="Sources")
    expect(sheet.locator(".source.current .passage")).to_be_visible()
    box = sheet.bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, PHONE[0])
    assert box["y"] > 0
    expect(person.composer).to_be_attached()
    sheet.get_by_role("button", name="Close sources").tap()
    expect(sheet).to_be_hidden()
    assert person.overflow() == 0


def test_the_dashboard_shows_the_ledger_as_chart_and_table(seat: Opener, live: Live) -> None:
    person = seat()
    person.begin()
    person.ask("Say hello.")
    person.answered()
    page = person.page
    page.get_by_text("Costs", exact=True).click()
    page.get_by_role("link", name="Spend").click()
    expect(page.get_by_role("heading", name="Spend")).to_be_visible()
    before = total(live)
    page.reload()
    shown = page.locator("tfoot td").first.get_attribute("title") or ""
    assert before <= Decimal(shown.split()[0]) <= total(live)
    expect(page.get_by_role("img", name="The table below has every number")).to_be_visible()
    assert page.locator("svg rect[class^=s]:not(.slot)").count() > 0
    page.get_by_label("By", exact=True).select_option("model")
    page.get_by_role("button", name="Show").click()
    model = str(live.sql("SELECT public_name FROM catalog_deployment WHERE purpose = 'chat'")[0][0])
    expect(page.locator("tbody th", has_text=model)).to_be_visible()
    assert "group_by=model" in page.url
    page.locator("tbody tr", has_text=model).locator("td a").first.click()
    expect(page.get_by_role("heading", name="Ledger entries")).to_be_visible()
    expect(page.locator(".narrowed")).to_contain_text(model)
    for tab, heading in (
        ("Budgets", "Budgets"),
        ("Dearest conversations", "Dearest conversations"),
        ("Own servers", "Own servers"),
        ("How sure", "How sure the figures are"),
        ("Overview", "Spend"),
    ):
        page.get_by_role("navigation", name="Views of spend").get_by_role("link", name=tab).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert person.overflow() == 0, tab
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").click()
    assert got.value.suggested_filename.startswith("spend-by-model-")


def total(live: Live) -> Decimal:
    """Everything that the ledger has, in money."""
    found: Decimal = live.sql("SELECT sum(price) FROM billing_ledgerentry")[0][0]
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_loads_without_a_complaint(seat: Opener, handbook: str, scheme: str) -> None:
    person = seat()
    person.page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
    document = person.live.http.get(f"/api/v1/collections/{handbook}/documents/").json()["items"][0]["id"]
    for path in ("/", "/documents/", f"/documents/{document}/", "/dashboard/", "/dashboard/?group_by=person"):
        person.open(path)
        expect(person.page.locator("h1").first).to_be_visible()
        if path == "/documents/":
            # It listens for as long as it is open.
            expect(person.page.locator("li.document").first).to_be_visible()
        else:
            person.page.wait_for_load_state("networkidle")
        assert person.overflow() == 0, path
        assert person.page.locator("html").get_attribute("data-theme") == scheme
    expect(person.page.get_by_role("button", name="Switch between light and dark")).to_be_visible()
    person.page.get_by_role("button", name="Switch between light and dark").click()
    assert person.page.locator("html").get_attribute("data-theme") != scheme
    person.page.goto("/dashboard/")
    assert person.page.locator("html").get_attribute("data-theme") != scheme


def test_what_is_not_there_is_said(seat: Opener) -> None:
    person = seat(expected=("status of 404",))
    person.open("/documents/")
    nothing = "00000000-0000-7000-8000-000000000000"
    person.page.goto(f"/c/{nothing}/")
    expect(person.page.get_by_role("alert")).to_contain_text("This conversation was deleted")
    person.page.goto(f"/documents/{nothing}/")
    expect(person.page.locator(".callout")).to_be_visible()
    person.page.goto("/nowhere/")
    expect(person.page.get_by_role("heading", level=1)).to_have_text("There is nothing here for you")
